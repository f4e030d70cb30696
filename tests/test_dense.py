"""Dense X in every type and form gives what plain float64 gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from answers import CLASSES, assert_same_answers, each_model, mixed_data

from gpucenters import L2CenterClassifier
from gpucenters.blocks import dense


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int64", "uint64", "float32", "float64"]
)
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_every_standard_type_gives_the_answers_of_float64(
    model: Any, n_classes: int, dtype: str, backend: Any
) -> None:
    plain, y = mixed_data(n_classes, np.dtype(dtype).kind)
    X = backend.array(plain, dtype)
    assert str(X.dtype).endswith(dtype)
    assert_same_answers(model, X, plain, y, backend)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, object, ">f8", ">i4"], ids=str)
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_every_other_type_of_numpy_gives_the_answers_of_float64(
    model: Any, n_classes: int, dtype: Any, on_host: Any
) -> None:
    plain, y = mixed_data(n_classes, "i" if dtype == ">i4" else "f")
    assert_same_answers(model, on_host.array(plain, dtype), plain, y, on_host)


@each_model
def test_values_near_the_end_of_uint64_do_not_wrap(model: Any, on_host: Any) -> None:
    small, y = mixed_data(2, "u")
    X = np.uint64(2**63) + small.astype(np.uint64) * np.uint64(2**40)
    assert_same_answers(model, X, X.astype(np.float64), y, on_host)


def test_int8_sums_do_not_wrap(backend: Any) -> None:
    X = np.full((1000, 2), 127, dtype=np.int8)
    X[500:, 1] = -128
    model = L2CenterClassifier().fit(backend.array(X), np.arange(1000) // 500)
    assert backend.host(model.centers_).tolist() == [[127, 127], [127, -128]]


DENSE_FORMS = {
    "list of lists": lambda x: x.tolist(),
    "list of arrays": list,
    "tuple of tuples": lambda x: tuple(map(tuple, x.tolist())),
    "Fortran order": np.asfortranarray,
    "view with steps": lambda x: np.repeat(x, 2, axis=0)[::2, ::-1][:, ::-1],
    "view backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "view of every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "pandas": pd.DataFrame,
    "pandas float32": lambda x: pd.DataFrame(x).astype("float32"),
    "pandas mixed": lambda x: pd.DataFrame(x).astype({0: "float32", 1: "float64"}),
    "polars": lambda x: pl.DataFrame({f"c{i}": x[:, i] for i in range(x.shape[1])}),
    "polars float32": lambda x: pl.DataFrame(
        {f"c{i}": x[:, i].astype("float32") for i in range(x.shape[1])}
    ),
}


@pytest.mark.parametrize("form", list(DENSE_FORMS))
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_every_dense_form_gives_the_answers_of_float64(
    model: Any, n_classes: int, form: str, on_host: Any
) -> None:
    plain, y = mixed_data(n_classes)
    assert_same_answers(model, DENSE_FORMS[form](plain), plain, y, on_host)


INTEGER_FORMS = {
    "nullable Int64": lambda x: pd.DataFrame(x).astype("Int64"),
    "nullable UInt8": lambda x: pd.DataFrame(x).astype("UInt8"),
    "integers and floats": lambda x: pd.DataFrame(x).astype({0: "int8", 1: "Int64", 2: "float32"}),
    "polars integers": lambda x: pl.DataFrame(
        {f"c{i}": x[:, i].astype("int32") for i in range(x.shape[1])}
    ),
    "list of integers": lambda x: x.astype(int).tolist(),
}


@pytest.mark.parametrize("form", list(INTEGER_FORMS))
@each_model
def test_every_form_of_integers_gives_the_answers_of_float64(
    model: Any, form: str, on_host: Any
) -> None:
    plain, y = mixed_data(3, "u")
    assert_same_answers(model, INTEGER_FORMS[form](plain), plain, y, on_host)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@each_model
def test_a_memory_map_gives_the_answers_of_float64(
    model: Any, dtype: str, order: str, tmp_path: Path, on_host: Any
) -> None:
    plain, y = mixed_data(3, np.dtype(dtype).kind)
    np.save(tmp_path / "x.npy", np.asarray(plain, dtype=dtype, order=order))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(X, np.memmap) and not X.flags.writeable
    assert X.flags.f_contiguous == (order == "F")
    found = assert_same_answers(model, X, plain, y, on_host)
    np.testing.assert_array_equal(found.transform(X), X[:, found.support_])


@pytest.mark.parametrize("view", ["steps", "transpose"])
@each_model
def test_strided_views_give_the_answers_of_float64(model: Any, view: str, backend: Any) -> None:
    plain, y = mixed_data(3)
    if view == "steps" and backend.name == "torch":
        X = backend.array(np.repeat(np.repeat(plain, 2, axis=0), 2, axis=1))[::2, ::2]
    elif view == "steps":
        X = backend.array(np.repeat(plain, 2, axis=0)[:, ::-1])[::2, ::-1]
    else:
        X = backend.array(np.ascontiguousarray(plain.T)).T
    assert_same_answers(model, X, plain, y, backend)


def test_sums_of_many_chunks_at_an_offset_keep_their_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dense, "dense_grid", lambda *_: (64, 2))
    rng = np.random.default_rng(2)
    X, y = 1.3e8 + rng.normal(size=(50_000, 2)), np.arange(50_000) % 2
    for model in (L2CenterClassifier(), L2CenterClassifier(scale="std")):
        total = model.statistics(X, y).total
        for c in range(2):
            for i in range(2):
                exact = math.fsum(X[y == c, i])
                # Without compensation each of the 782 chunks rounds the total.
                assert abs(total[c, i] - exact) <= math.ulp(exact)
