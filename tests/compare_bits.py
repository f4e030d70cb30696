"""Compare the bits of fits of two checkouts: ``python tests/compare_bits.py OLD NEW [PART ...]``.

For changes that must not change results. Both checkouts run on this machine, since the last bits
depend on the processor and on the versions of NumPy and SciPy. Each model is fitted on each
container, backend, number of classes and kind of weights, in one call and in batches. Parts are
"small", "wide" and "large"; by default all are run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

ATTRIBUTES = (
    *("support_", "ranking_", "scores_", "centers_", "objective_", "scale_", "coef_"),
    *("intercept_", "class_log_prior_", "feature_log_prob_", "feature_count_", "gap_"),
    *("upper_bound_", "covariance_", "means_", "transformation_", "shrinkage_"),
    *("variances_", "epsilon_", "threshold_", "pvalues_", "class_exposure_"),
)
METHODS = ("decision_function", "predict", "predict_proba", "predict_log_proba", "transform")


def models() -> dict[str, Any]:
    """Each model with each parameter that changes its arithmetic."""
    import gpucenters
    from gpucenters import (
        L1CenterClassifier,
        L2CenterClassifier,
        MahalanobisCenterClassifier,
        ShrunkenCentroidClassifier,
        SparseBernoulliNB,
        SparseGaussianNB,
        SparseMultinomialNB,
        SparsePoissonNB,
    )

    found: dict[str, Any] = {}
    for scale in (None, "std", "pooled"):
        found[f"l2 {scale}"] = L2CenterClassifier(k=5, scale=scale, priors="empirical")
        found[f"l1 {scale}"] = L1CenterClassifier(k=5, scale=scale)
    found["bernoulli"] = SparseBernoulliNB(k=5)
    found["bernoulli 2"] = SparseBernoulliNB(k=0.5, alpha=0.3, binarize=1.0, fit_prior=False)
    found["multinomial"] = SparseMultinomialNB(k=5)
    found["multinomial all"] = SparseMultinomialNB(alpha=0.1)
    found["poisson"] = SparsePoissonNB(k=5)
    found["poisson dispersion"] = SparsePoissonNB(k=5, scale="dispersion", alpha=0.1)
    found["gaussian"] = SparseGaussianNB(k=5)
    found["gaussian pooled"] = SparseGaussianNB(k=5, pooling=1.0, ddof=1)
    found["shrunken"] = ShrunkenCentroidClassifier(k=5)
    found["mahalanobis"] = MahalanobisCenterClassifier(k=5, shrinkage=0.2)
    found["mahalanobis total"] = MahalanobisCenterClassifier(covariance="total", shrinkage=0.3)
    found["mahalanobis lw"] = MahalanobisCenterClassifier(k=7, shrinkage="ledoit-wolf")
    for name in gpucenters.__all__:
        kind = getattr(gpucenters, name)
        if hasattr(kind, "with_k") and kind not in map(type, found.values()):
            found[name] = kind(k=5)
    return found


def data(seed: int, n: int, m: int, classes: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of one kind, and codes in which every class occurs early."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    X = {
        "counts": lambda: rng.poisson(0.7, (n, m)) * rng.integers(1, 4, (n, m)),
        "real": lambda: np.where(rng.random((n, m)) < 0.5, rng.gamma(2.0, 1.0, (n, m)), 0.0),
        "offset": lambda: 1e6 + rng.random((n, m)),
    }[kind]().astype(np.float64)
    X[:, 0] += 2 * (y == 1)
    X[:, m // 2] = 3.0
    return X, y


def containers(X: np.ndarray) -> Iterator[tuple[str, Any]]:
    """The same values in each kind of container."""
    import array_api_strict

    yield "numpy", X
    yield "numpy float32 F", np.asfortranarray(X.astype(np.float32))
    yield "csr", scipy.sparse.csr_array(X)
    yield "csr float32", scipy.sparse.csr_matrix(X.astype(np.float32))
    yield "csc", scipy.sparse.csc_array(X)
    yield "strict", array_api_strict.asarray(X, device=array_api_strict.Device("device1"))
    import cupy
    import cupyx.scipy.sparse

    yield "cupy", cupy.asarray(X)
    yield "cupy float32", cupy.asarray(X.astype(np.float32))
    yield "cupyx csr", cupyx.scipy.sparse.csr_matrix(scipy.sparse.csr_matrix(X))
    yield "cupyx csc", cupyx.scipy.sparse.csc_matrix(scipy.sparse.csc_matrix(X))


def digest(x: Any) -> str:
    """A hash of the type, shape and bits of any result."""
    if scipy.sparse.issparse(x) or type(x).__module__.startswith("cupyx"):
        x = (x.get() if hasattr(x, "get") else x).toarray()
    elif hasattr(x, "get"):
        x = x.get()
    elif hasattr(x, "__array_namespace__") and not isinstance(x, np.ndarray | np.generic):
        xp = x.__array_namespace__()
        x = np.asarray(xp.asarray(x, device=xp.Device("CPU_DEVICE")))
    x = np.ascontiguousarray(x)
    return hashlib.sha256(f"{x.dtype} {x.shape}".encode() + (x + 0).tobytes()).hexdigest()[:16]


def results(model: Any, X: Any, **of_rows: np.ndarray) -> dict[str, str]:
    """Digests of all that a fitted model tells."""
    found = {}
    for name in ATTRIBUTES:
        if hasattr(type(model), name):
            found[name] = digest(np.nan if (x := getattr(model, name)) is None else x)
    for name in METHODS:
        if hasattr(type(model), name):
            given = {} if name == "transform" else of_rows
            found[name] = digest(getattr(model, name)(X, **given))
    return found


def fits(model: Any, X: Any, y: np.ndarray, weights: Any) -> Iterator[tuple[str, Any]]:
    """The model fitted in one call, at another k, and in batches."""
    from sklearn.base import clone

    model = clone(model)
    yield "fit", model.fit(X, y, sample_weight=weights)
    yield "with_k", model.with_k(3)
    if not hasattr(model, "partial_fit"):
        return
    batches = clone(model)
    n = len(y)
    for rows in (slice(0, n // 3), slice(n // 3, n // 3 + 2), slice(n // 3 + 2, n)):
        s = None if weights is None else weights[rows]
        batches.partial_fit(X[rows, :], y[rows], classes=np.unique(y), sample_weight=s)
    yield "partial_fit", batches


def one_case(name: str, model: Any, X: Any, y: np.ndarray, weights: Any, out: dict) -> None:
    """Add the results of a model on one container."""
    for way, solve in (("one call, with_k, batches", fits),):
        try:
            for how, fitted in solve(model, X, y, weights):
                out[f"{name} | {how}"] = results(fitted, X)
        except Exception as error:
            out[f"{name} | {way} raises"] = {type(error).__name__: str(error)}


def small() -> dict[str, dict[str, str]]:
    """Each model on each container."""
    out: dict[str, dict[str, str]] = {}
    shapes = [(0, 90, 12, 2, "counts"), (1, 90, 12, 4, "real"), (2, 70, 10, 3, "offset")]
    shapes.append((3, 3000, 120, 2, "real"))
    for seed, n, m, classes, kind in shapes:
        X, y = data(seed, n, m, classes, kind)
        rng = np.random.default_rng(seed)
        kinds = {"none": None, "integer": rng.integers(0, 3, n) * 1.0, "real": rng.random(n) + 0.1}
        kinds["integer"][:classes] = 1
        for container, held in containers(X):
            if n > 1000 and ("strict" in container or "cupy" in container):
                continue
            for weight, weights in kinds.items():
                for name, model in models().items():
                    case = f"{kind} {n}x{m} K={classes} {container} weights={weight} {name}"
                    one_case(case, model, held, y, weights, out)
    return out


def wide() -> dict[str, dict[str, str]]:
    """Batches of a few rows of wide sparse data: each changes few columns of the sums."""
    out: dict[str, dict[str, str]] = {}
    n, m, rows, per_row = 48, 6000, 6, 100
    for classes, kind in ((2, "counts"), (3, "real"), (3, "offset"), (2, "whole at first")):
        rng = np.random.default_rng(classes)
        X, y = np.zeros((n, m)), rng.permuted(np.arange(n) % classes)
        for i in range(n):
            columns = rng.choice(m if i % 2 else 300, per_row, replace=False)
            whole = kind == "counts" or (kind == "whole at first" and i < n // 2)
            X[i, columns] = rng.integers(1, 4, per_row) if whole else rng.random(per_row)
        if kind == "offset":  # ill-conditioned, some of them only after some batches
            X[:, 5] += 1e6
            X[n // 3 :, 7] += 1e6
            X[::2, 9] = 1e7
        if kind == "whole at first":  # raw sums that cancel, and are exact until then
            X[:, 5] += 1e5
        s, exposure = rng.random(n) + 0.1, rng.random(n) + 0.5
        kinds = {"none": {}, "real": {"sample_weight": s}, "exposures": {"exposure": exposure}}
        for container, held in containers(X):
            for kept, of_rows in kinds.items():
                for name, model in models().items():
                    batches = "csr" in container and hasattr(model, "partial_fit")
                    if not batches or "mahalanobis" in name:
                        continue
                    if kept != "exposures" or "poisson" in name:
                        case = f"wide {kind} K={classes} {container} {kept} {name}"
                        out |= stream(case, model, held, y, rows, of_rows)
    return out


def stream(
    case: str, model: Any, X: Any, y: np.ndarray, rows: int, of_rows: dict[str, np.ndarray]
) -> dict[str, dict[str, str]]:
    """A model in batches of some rows, halfway and at the end; and from their merged statistics."""
    from sklearn.base import clone

    out, model, merged, n = {}, clone(model), None, len(y)
    for start, stop in pairwise([0, *range(2 * rows, n + 1, rows)]):  # the first one is not small
        part = slice(start, stop)
        batch = X[part, :], y[part]
        some = {name: values[part] for name, values in of_rows.items()}
        model.partial_fit(*batch, classes=np.unique(y), **some)
        statistics = model.statistics(*batch, classes=np.unique(y), **some)
        merged = statistics if merged is None else merged.merge(statistics)
        if stop in (n // 2, n):
            fitted = {"batches": model, "merged": clone(model).fit_statistics(merged)}
            given = {name: values for name, values in of_rows.items() if name == "exposure"}
            for how, one in fitted.items():
                out[f"{case} | {how} to {stop}"] = results(one, X, **given)
    return out


def large() -> dict[str, dict[str, str]]:
    """Shapes beyond one chunk, where sums run in several parts, on one thread and on all."""
    from gpucenters import L1CenterClassifier, L2CenterClassifier, SparseBernoulliNB

    rng = np.random.default_rng(0)
    n, m, per_row = 900_000, 30_000, 20
    indices = rng.integers(0, m, n * per_row, dtype=np.int32)
    indptr = np.arange(0, indices.size + 1, per_row, dtype=np.int32)
    X = scipy.sparse.csr_matrix((rng.random(indices.size, np.float32), indices, indptr), (n, m))
    y, out = rng.integers(0, 3, n), {}
    dense = rng.standard_normal((1500, 4000), dtype=np.float32)
    for threads in ("1", ""):
        os.environ["OMP_NUM_THREADS"] = threads
        for name, model in {
            "l2": L2CenterClassifier(k=9),
            "l2 pooled": L2CenterClassifier(k=9, scale="pooled", memory_budget="300MB"),
            "bernoulli": SparseBernoulliNB(k=9, binarize=0.5),
        }.items():
            out[f"large csr, threads={threads} {name}"] = results(model.fit(X, y), X[:5000])
        for name, model in {
            "l2": L2CenterClassifier(k=9, scale="std"),
            "l1": L1CenterClassifier(k=9, scale="pooled"),
        }.items():
            fitted = model.fit(dense, y[:1500])
            out[f"large dense, threads={threads} {name}"] = results(fitted, dense)
    return out


PARTS: dict[str, Callable[[], dict]] = {"small": small, "wide": wide, "large": large}


def collect(parts: list[str]) -> dict[str, dict[str, str]]:
    """Results of all cases, with the package that is on the path."""
    out: dict[str, dict[str, str]] = {}
    for part in parts or PARTS:
        out |= PARTS[part]()
    return out


def compare(old: Path, new: Path, parts: list[str]) -> int:
    """Run both checkouts and print what differs; returns the exit status."""
    runs = []
    for checkout in (old, new):
        path = os.pathsep.join([str(checkout), str(checkout / "tests" / "fake_cupy")])
        environment = os.environ | {"PYTHONPATH": path, "SCIPY_ARRAY_API": "1"}
        command = [sys.executable, __file__, "--collect", *parts]
        done = subprocess.run(
            command, env=environment, cwd="/", check=True, stdout=subprocess.PIPE, text=True
        )
        runs.append(json.loads(done.stdout))
    before, after = runs
    differ = 0
    for case in sorted(before):  # a model that is new has no results before
        a, b = before[case], after.get(case, {})
        names = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
        if names:
            differ += 1
            print(f"{case}: {', '.join(names)}")
            if "raises" in case:
                print("   ", a, "->", b)
    values = sum(map(len, before.values()))
    print(f"{len(before)} fits, {values} results: {differ} fits differ")
    return int(differ > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--collect":
        json.dump(collect(sys.argv[2:]), sys.stdout)
    else:
        raise SystemExit(compare(*(Path(p).resolve() for p in sys.argv[1:3]), sys.argv[3:]))
