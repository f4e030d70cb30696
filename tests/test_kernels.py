"""The CUDA kernels, compiled as C++ and compared with the stand-in and with NumPy."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import BACKENDS, cupy
from sklearn.base import clone
from stand_in import counts, on_stand_in
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseMultinomialNB,
)
from gpucenters.arrays import functions, kernels

_SHIM = r"""
#include <cstring>
#define __global__
#define __device__ static
struct Dim { long long x; };
static Dim blockIdx, blockDim, threadIdx;
static long long reads, additions;
struct Counted { int value; explicit operator long long() const { ++reads; return value; } };
static double atomicAdd(double* p, double v) { ++additions; double old = *p; *p += v; return old; }
extern "C" void counts(long long* found)
{ found[0] = reads; found[1] = additions; reads = additions = 0; }
static long long __double_as_longlong(double x) { long long u; std::memcpy(&u, &x, 8); return u; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __dsub_rn(double a, double b) { return a - b; }
inline double __longlong_as_double(long long u) { double x; std::memcpy(&x, &u, 8); return x; }
// float32 under -ftz=true: conversions and operations take subnormal numbers for zero.
struct Flushing {
    unsigned int bits;
    operator double() const
    {
        unsigned int kept = bits & 0x7f800000u ? bits : bits & 0x80000000u;
        float x;
        std::memcpy(&x, &kept, 4);
        return x;
    }
    friend Flushing operator+(Flushing a, float b)
    {
        float sum = (float)((double)a + b);
        Flushing out;
        std::memcpy(&out, &sum, 4);
        return out;
    }
};
#define float Flushing
static unsigned int __float_as_uint(float x) { return x.bits; }
static float __uint_as_float(unsigned int u) { return {u}; }
extern "C" void place(long long block, long long width, long long thread)
{ blockIdx.x = block; blockDim.x = width; threadIdx.x = thread; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kernels as C++: ``run(options, name, threads, *args)``."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        assert not os.environ.get("CI"), "CI must have a C++ compiler"
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    libraries: dict[tuple[str, ...], ctypes.CDLL] = {}

    def library(options: tuple[str, ...]) -> ctypes.CDLL:
        if options not in libraries:
            source = folder / f"kernels{len(libraries)}.cpp"
            file = "lists.cu" if any("SHARE" in option for option in options) else "kernels.cu"
            source.write_text(_SHIM + kernels.source(file))
            path = source.with_suffix(".so")
            flags = ["-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-std=c++17"]
            flags.append("-Wno-unused-function")  # of the shim
            done = subprocess.run(
                [compiler, *flags, *options, str(source), "-o", str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            libraries[options] = ctypes.CDLL(str(path))
        return libraries[options]

    def run(
        options: tuple[str, ...], name: str, threads: int, *args: Any, counted: Any = None
    ) -> None:
        lib = library(options)
        plain = [
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_longlong(a)
            for a in args
        ]
        for thread in range(threads):
            lib.place(*(ctypes.c_longlong(v) for v in (thread // 256, 256, thread % 256)))
            getattr(lib, name)(*plain)
        if counted is not None:
            lib.counts(ctypes.c_void_p(counted.ctypes.data))

    return run


def _played() -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parent / "fake_cupy"))
    try:
        from cupy import _raw
    finally:
        sys.path.pop(0)
    return _raw.KERNELS


@on_stand_in
@pytest.mark.parametrize("options", kernels.type_options("kernels.cu"), ids=" ".join)
@pytest.mark.parametrize("by_row", [True, False])
def test_the_kernel_of_class_sums_equals_its_stand_in_and_numpy(
    compiled: Any, options: tuple[str, str], by_row: bool
) -> None:
    index = np.dtype(np.int32 if "int" in options[0] and "long" not in options[0] else np.int64)
    value = {"float": np.float32, "double": np.float64}.get(options[1].split("=")[1], np.uint8)
    rng = np.random.default_rng(3)
    n, m, k, slots = 57, 40, 3, 4
    # Empty rows and columns, also at both ends, and one row longer than the run of a thread.
    X = rng.integers(0, 2, (n, m)) * (rng.random((n, 1)) < 0.6) * (rng.random(m) < 0.7)
    X[0] = X[-1] = 0
    X[30] = 1
    matrix = (scipy.sparse.csr_matrix if by_row else scipy.sparse.csc_matrix)(X.astype(value))
    stored = matrix.nnz
    codes = rng.integers(0, k, n).astype(np.int32)
    head = (
        *(matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)),
        *(matrix.indptr.shape[0] - 1, 0, stored, int(by_row), codes),
    )
    for weights, factors in ((0, 0), (rng.random(n), rng.random(n))):
        for with_square, with_sum in (
            (True, True),
            (False, True),
            (True, False),
            (False, False),
        ):
            found = []
            for play in ("compiled", "played"):
                total = np.zeros((k, m))
                square = np.zeros((k, m)) if with_square else 0
                sum_of_squares = np.zeros((k, slots)) if with_sum else 0
                args = (*head, weights, factors, m, total, square, sum_of_squares, slots)
                if play == "compiled":
                    compiled(options, "add_class_sums", -(-stored // 8) + 3, *args)
                else:
                    _played()["add_class_sums"](*args)
                found.append((total, square, sum_of_squares))
            for a, b in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)
            # Both equal NumPy, too.
            w = np.ones(n) if isinstance(weights, int) else weights
            truth = [(w[:, None] * X)[codes == c].sum(axis=0) for c in range(k)]
            np.testing.assert_allclose(found[0][0], truth, rtol=1e-13)
            if with_square:
                w = w * (1 if isinstance(factors, int) else factors)
                truth = [(w[:, None] * X * X)[codes == c].sum(axis=0) for c in range(k)]
                np.testing.assert_allclose(found[0][1], truth, rtol=1e-13)


def _reads_and_additions(
    compiled: Any, X: Any, codes: np.ndarray, *, by_row: bool
) -> tuple[int, int]:
    """Of the kernel of class sums: reads of indices and row pointers, and atomic additions."""
    counted, total = np.zeros(2, np.int64), np.zeros((2, X.shape[1]))
    lines = X.indptr.shape[0] - 1
    head = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), lines, 0, X.nnz
    args = *head, int(by_row), codes, 0, 0, X.shape[1], total, 0, 0, 1
    options = "-DINDEX=Counted", "-DVALUE=float"
    compiled(options, "add_class_sums", -(-X.nnz // 8), *args, counted=counted)
    np.testing.assert_array_equal(total.sum(axis=0), np.asarray(X.sum(axis=0)).reshape(-1))
    return int(counted[0]), int(counted[1])


def test_the_kernel_of_class_sums_skips_empty_rows_by_a_search(compiled: Any) -> None:
    rows = np.asarray([0, 50_000, 99_999])
    entries = np.ones(3, np.float32), (rows, np.arange(3))
    X = scipy.sparse.csr_matrix(entries, shape=(100_000, 3))
    reads, _ = _reads_and_additions(compiled, X, np.zeros(100_000, np.int32), by_row=True)
    assert reads <= 100


def test_the_kernel_of_class_sums_adds_up_neighbours_first(compiled: Any) -> None:
    X = scipy.sparse.csc_matrix(np.ones((1024, 3), np.float32))
    _, additions = _reads_and_additions(compiled, X, np.zeros(1024, np.int32), by_row=False)
    assert additions == X.nnz // 8


@on_stand_in
def test_squares_are_rounded_before_they_are_added(compiled: Any) -> None:
    rng = np.random.default_rng(6)
    x = rng.random(8 * kernels.SLOTS)  # each slot takes the entries of one thread
    m = x.size
    places, indptr, codes = (np.asarray(a, np.int32) for a in (range(m), [0, m], [0]))
    total, expected = np.zeros((1, m)), np.zeros((1, kernels.SLOTS))
    head = (x, places, indptr, 1, 0, m, 1, codes, 0, 0, m, total)
    options = ("-DINDEX=int", "-DVALUE=double")
    compiled(options, "add_class_sums", kernels.SLOTS, *head, 0, expected, kernels.SLOTS)
    there = [cupy.asarray(a) for a in (x, places, indptr, codes)]
    found = cupy.zeros(expected.shape)
    sums = (None, None, cupy.zeros((1, m)), None, found)
    kernels.add_class_sums(*there[:3], 0, True, there[3], *sums)
    np.testing.assert_array_equal(found.get(), expected)


@on_stand_in
def test_float32_values_of_every_kind_are_summed_as_float64(compiled: Any) -> None:
    """Each is the only one of its column, so that its sum is the value itself."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2**32, 5000, dtype=np.uint32).view(np.float32)
    few = np.asarray([0.0, -0.0, 1e-45, -1e-40, 1.1754942e-38, 1.17549435e-38, 3.4e38, np.inf])
    x = np.concatenate([few.astype(np.float32), -few.astype(np.float32), [np.float32(np.nan)], x])
    m = x.size
    indptr, codes = np.asarray([0, m], np.int32), np.zeros(1, np.int32)
    total = np.zeros((1, m))
    args = (x, np.arange(m, dtype=np.int32), indptr, 1, 0, m, 1, codes, 0, 0, m, total, 0, 0, 4)
    compiled(("-DINDEX=int", "-DVALUE=float"), "add_class_sums", -(-m // 8), *args)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(total[0], x.astype(np.float64))


@on_stand_in
@pytest.mark.parametrize("order", ["C", "F", "cut"])
def test_the_keys_of_the_kernel_sort_as_their_values(compiled: Any, order: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((23, 9)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = 0
    x[3, 2], x[4, 2], x[5, 2] = -0.0, np.inf, -np.inf
    x[6, 2], x[7, 2] = np.finfo(np.float32).tiny / 4, -np.finfo(np.float32).max
    x[8, 2], x[9, 2] = -1e-45, 1e-40  # subnormal, too
    x = {"C": x, "F": np.asfortranarray(x), "cut": x[:, 2:7]}[order]
    rows, columns = x.shape
    codes = rng.integers(-1, 3, rows).astype(np.int32)
    args = (x, x.strides[0] // 4, x.strides[1] // 4, rows, columns, codes, 3)
    keys, played = (np.zeros(x.size, np.uint64) for _ in range(2))
    compiled(("-DINDEX=int", "-DVALUE=float"), "pack_lists", x.size + 5, *args, keys)
    _played()["pack_lists"](*args, played)
    np.testing.assert_array_equal(keys, played)
    keys.sort()
    kept = int((codes >= 0).sum()) * columns
    values, again = (np.zeros(kept, np.float32) for _ in range(2))
    compiled(("-DINDEX=int", "-DVALUE=float"), "unpack_values", kept + 5, keys, kept, values)
    _played()["unpack_values"](keys, kept, again)
    np.testing.assert_array_equal(values, again)
    expected = [np.sort(x[codes == c, i]) for i in range(columns) for c in range(3)]
    np.testing.assert_array_equal(values, np.concatenate(expected))
    assert not np.signbit(values[values == 0]).any()


def _lists(
    rng: np.random.Generator, value: Any, mass: Any, *, zeros: bool, weighted: bool
) -> tuple[Any, ...]:
    """Lists of a few sizes, with ties: what kernels read, weights, and the numbers stored."""
    k, b = 3, 17
    size = rng.integers(1, 12, (k, b))
    at, zero_mass, stored = 0, 0, size
    numbers = (
        [-3e38, -1.5, -1e-3, -2.5e-39, 0.25, 1.0, 7.0, 3e38]
        if value is np.float32
        else [-1e300, -2.5, -1e-310, 1e-9, 1.0, 3.0, 1e300]
    )
    lists = [np.sort(rng.choice(numbers, n)).astype(value) for n in size.reshape(-1)]
    if zeros:
        has_zero = rng.random((k, b)) < 0.7
        stored = size - has_zero
        lists = [x[:n] for x, n in zip(lists, stored.reshape(-1), strict=True)]
        below = np.reshape([int((x < 0).sum()) for x in lists], (k, b))
        at = np.where(has_zero, below, size)
        zero_mass = np.where(has_zero, rng.integers(1, 5, (k, b)), 0).astype(mass)
    start = np.reshape(np.cumsum([0] + [len(x) for x in lists[:-1]]), (k, b))
    values, weights, cumulative = np.concatenate(lists), 0, 0
    if weighted:
        weights = rng.integers(1, 4, values.size).astype(np.float64)
        parts = np.split(weights, start.reshape(-1)[1:])
        cumulative = np.concatenate([np.cumsum(p) for p in parts]).astype(mass)
    return (values, start, size, at, zero_mass, cumulative), weights, stored


def _interval(items: list[tuple[float, float]], least: float, most: float) -> tuple[float, float]:
    """By the definition: the smallest value up to which weights reach ``least``, and the next."""
    values = sorted({v for v, _ in items})
    upto = [sum(w for v, w in items if v <= value) for value in values]
    first = next(i for i, w in enumerate(upto) if w >= least)
    more = upto[first] > most or first + 1 == len(values)
    return values[first], values[first if more else first + 1]


@on_stand_in
@pytest.mark.parametrize("options", kernels.type_options("lists.cu"), ids=" ".join)
@pytest.mark.parametrize(("zeros", "weighted"), [(False, False), (True, False), (True, True)])
def test_the_kernels_of_lists_equal_their_stand_ins_and_the_definition(
    compiled: Any, options: tuple[str, str, str], zeros: bool, weighted: bool
) -> None:
    kinds = {"float": np.float32, "double": np.float64, "long long": np.int64}
    value, mass, share = (kinds[option.split("=")[1]] for option in options)
    rng = np.random.default_rng(5)
    lists, weights, stored = _lists(rng, value, mass, zeros=zeros, weighted=weighted)
    values, start, size, at, zero_mass, _ = lists
    k, b = size.shape
    items: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for c, j in np.ndindex(k, b):
        part = slice(start[c, j], start[c, j] + stored[c, j])
        own = np.ones(stored[c, j]) if isinstance(weights, int) else weights[part]
        items[c, j] = list(zip(values[part].astype(float), own, strict=True))
        if zeros and at[c, j] < size[c, j]:
            items[c, j].append((0.0, float(zero_mass[c, j])))
    total = np.reshape([sum(w for _, w in items[key]) for key in np.ndindex(k, b)], (k, b))
    # Of each class the least weight, so that each list reaches half.
    half = total.min(axis=1).astype(mass)
    found = [np.full((k, b), np.nan) for _ in range(4)]
    arguments = *lists, k, b, half, half
    compiled(options, "class_intervals", k * b + 3, *arguments, *found[:2])
    _played()["class_intervals"](*arguments, *found[2:])
    # (Twice a mass is compared with the weight of the class.)
    expected = [_interval(items[c, j], half[c] / 2, half[c] / 2) for c, j in np.ndindex(k, b)]
    for pair in (found[:2], found[2:]):
        np.testing.assert_array_equal(np.reshape(pair, (2, -1)).T, expected)

    factor = np.asarray([2, 3, 5], dtype=share)
    together = [
        [(v, w * float(factor[c])) for c in range(k) for v, w in items[c, j]] for j in range(b)
    ]
    for goal in sorted({sum(w for _, w in column) // 2 for column in together}):
        columns = [j for j in range(b) if sum(w for _, w in together[j]) >= goal]
        expected = [_interval(together[j], goal, goal) for j in columns]
        bounds, scratch = np.asarray([goal, goal], dtype=share), np.full((3, k, b), -1)
        arguments = *lists, k, b, factor, bounds, scratch
        for play in (compiled, None):
            low = np.asarray([min(v for v, _ in column) for column in together])
            high = np.asarray([max(v for v, _ in column) for column in together])
            if play is None:
                _played()["joint_intervals"](*arguments, low, high)
            else:
                compiled(options, "joint_intervals", b + 3, *arguments, low, high)
            np.testing.assert_array_equal(np.stack([low, high], axis=1)[columns], expected)

    # Of numbers whose differences are exact.
    values = np.round(4 * rng.standard_normal(values.size)).astype(value)
    center, other = (np.round(4 * rng.standard_normal((k, b))) / 2 for _ in range(2))
    for towards in (0, other):
        for lanes in (1, 4):
            sums = [np.full((lanes, k, b), np.nan) for _ in range(2)]
            arguments = values, start, stored, weights, k * b, lanes, center, towards
            compiled(options, "distance_sums", k * b * lanes + 3, *arguments, sums[0])
            _played()["distance_sums"](*arguments, sums[1])
            np.testing.assert_array_equal(*sums)
            for c, j in np.ndindex(k, b):
                part = slice(start[c, j], start[c, j] + stored[c, j])
                own = 1 if isinstance(weights, int) else weights[part]
                terms = abs(values[part].astype(float) - center[c, j])
                if towards is other:
                    sign = -1 if other[c, j] < center[c, j] else 1
                    terms = sign * (abs(values[part] - other[c, j]) - terms) / 2
                assert sums[0][:, c, j].sum() == (own * terms).sum()


@on_stand_in
def test_the_kernels_by_element_give_the_bits_of_numpy(compiled: Any) -> None:
    rng, options = np.random.default_rng(6), ("-DINDEX=int", "-DVALUE=float")
    x = rng.random(500) * 10.0 ** rng.integers(-300, 308, 500)
    x[:4] = 0, np.finfo(np.float64).max, 2.0**1000, 5e-324
    total, share = rng.standard_normal((3, 41)), rng.random(3)
    unit = 2.0 ** rng.integers(-9, 9, 3)
    for name, threads, arguments, expected in (
        ("round_to_40_bits", 500, (x, 500), functions.round_to_40_bits(x)),
        *(
            ("scaled_differences", 41, (total, 3, 41, share, unit), found)
            for found in [functions.scaled_differences(total, share, unit)]
        ),
    ):
        out, again = np.full(expected.shape, np.nan), np.full(expected.shape, np.nan)
        compiled(options, name, threads + 3, *arguments, out)
        _played()[name](*arguments, again)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(again, expected)


@on_stand_in
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_strided_parts_of_cupyx_matrices_give_the_model_of_contiguous_ones(layout: str) -> None:
    X, y = counts(80, 30)
    plain = getattr(BACKENDS["cupy"], layout)(X)
    table = cupy.zeros((plain.nnz, 3), dtype=cupy.float32)
    places = cupy.zeros((plain.nnz, 2), dtype=cupy.int32)
    table[:, 1], places[:, 0] = plain.data, plain.indices
    kind = type(plain)
    strided = kind((table[:, 1], places[:, 0], plain.indptr), shape=plain.shape)
    if strided.data.flags.c_contiguous:
        strided.data, strided.indices = table[:, 1], places[:, 0]
    assert not strided.data.flags.c_contiguous
    for model in (
        L2CenterClassifier(k=4),
        L2CenterClassifier(k=4, scale="std"),
        L1CenterClassifier(k=2),
        SparseMultinomialNB(k=4),
    ):
        expected, found = quietly(clone(model).fit, plain, y), quietly(model.fit, strided, y)
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_allclose(found.scores_.get(), expected.scores_.get(), rtol=1e-13)
        np.testing.assert_array_equal(found.predict(strided).get(), expected.predict(plain).get())
