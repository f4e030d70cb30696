"""The main job on two data sets: what the models choose, how well they predict, how long it takes.

The demo plays the user, so it makes its data with NumPy and SciPy.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import scipy.sparse
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gpucenters import (
    DeviceUnavailableError,
    L1CenterClassifier,
    L2CenterClassifier,
    __version__,
    devices,
)

N_DOCUMENTS, N_WORDS, LENGTH = 200_000, 100_000, 12
N_TOPICAL, LEAN = 500, 6.0  # words that one class uses more often, and how much more


def run_demo(device: str) -> int:
    """Print the demo; returns the exit status."""
    console = Console(width=None if sys.stdout.isatty() else 100)
    try:
        L2CenterClassifier(device=device).fit([[0.0], [1.0]], [0, 1])
    except (DeviceUnavailableError, ValueError) as error:
        console.print(f"[red]{escape(str(error))}")
        return 1
    console.print(f"gpucenters {__version__}\n")
    table = Table("device", "", "", title="Devices of this machine", title_justify="left")
    for info in devices():
        table.add_row(
            info.name, "usable" if info.usable else "not usable", escape(info.description)
        )
    console.print(table)
    _breast_cancer(console, device)
    _text(console, device)
    return 0


def _breast_cancer(console: Console, device: str) -> None:
    data = load_breast_cancer()
    X, y, names = data.data, data.target, data.feature_names
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    console.print(
        "\n[bold]Breast cancer[/] (real, from scikit-learn): "
        f"{len(X_train)} samples to fit, {len(X_test)} held out, {X.shape[1]} features"
    )
    table = Table("k", "l2 held-out", "l1 held-out", "l2 selects, best first", title_justify="left")
    models = [
        kind(k=1, scale="std", device=device).fit(X_train, y_train)
        for kind in (L2CenterClassifier, L1CenterClassifier)
    ]
    for k in (1, 3, 5, 10, "all"):
        # One fit serves every k.
        l2, l1 = (model.with_k(k) for model in models)
        chosen = names[l2.ranking_]
        text = ", ".join(chosen[:5]) + (f" and {len(chosen) - 5} more" if len(chosen) > 5 else "")
        table.add_row(
            str(k), f"{l2.score(X_test, y_test):.3f}", f"{l1.score(X_test, y_test):.3f}", text
        )
    console.print(table)


def _text(console: Console, device: str) -> None:
    X, y, evidence, is_topical = make_text(N_DOCUMENTS, N_WORDS, LENGTH, N_TOPICAL, seed=0)
    half = N_DOCUMENTS // 2
    train, test = slice(0, half), slice(half, None)
    # The best there is: by the probabilities that the words were drawn with.
    ceiling = np.mean(np.where(X[test] @ evidence > 0, "right", "left") == y[test])
    console.print(
        f"\n[bold]Synthetic text[/] ({N_DOCUMENTS:,} documents x {N_WORDS:,} words, CSR, "
        f"{X.nnz:,} stored counts): half to fit, half held out.\n"
        f"{N_TOPICAL} words are used {LEAN:g} times as often by one class; the rest is noise. "
        f"Who knew how the words were drawn would be right in {ceiling:.3f}."
    )
    # One fit serves every k.
    plain, scaled = (L2CenterClassifier(scale=scale, device=device) for scale in (None, "std"))
    plain_took, plain = _timed(lambda: plain.fit(X[train], y[train]))
    scaled_took, scaled = _timed(lambda: scaled.fit(X[train], y[train]))
    table = Table(
        "k",
        "held-out accuracy",
        'with scale="std"',
        "topical words among the k",
        "predict, s",
        title_justify="left",
    )
    for k in (10, 100, 500, 5_000, "all"):
        chosen = scaled.with_k(k)
        took, accuracy = _timed(lambda chosen=chosen: chosen.score(X[test], y[test]))
        hits = np.intersect1d(chosen.support_, np.flatnonzero(is_topical)).size
        table.add_row(
            f"{k:,}" if isinstance(k, int) else k,
            f"{plain.with_k(k).score(X[test], y[test]):.3f}",
            f"{accuracy:.3f}",
            f"{hits}",
            f"{took:.2f}",
        )
    console.print(table)
    console.print(
        f"fit, all k at once: {plain_took:.2f} s, {scaled_took:.2f} s with scale, "
        f"on {plain._fitted.backend}"
    )


def make_text(
    n: int, m: int, length: int, n_topical: int, seed: int
) -> tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Documents of two classes whose words follow Zipf's law.

    Returns
    -------
    X : csr_array of shape (n, m), float32
        Word counts.
    y : ndarray of shape (n,)
        "left" or "right".
    evidence : ndarray of shape (m,)
        Log of how much more likely each word is in "right" than in "left".
    is_topical : ndarray of shape (m,), bool
        The words that one class uses more often.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(10, m + 10) ** 1.07
    topical = np.sort(rng.choice(np.arange(50, m // 20), n_topical, replace=False))
    lean = np.ones((2, m))
    lean[0, topical[::2]] = lean[1, topical[1::2]] = LEAN
    labels = rng.integers(0, 2, n)
    words = np.empty((n, length), dtype=np.int32)
    for c in (0, 1):
        rows = np.flatnonzero(labels == c)
        steps = np.cumsum(frequency * lean[c])
        draws = rng.random((rows.size, length)) * steps[-1]
        words[rows] = np.searchsorted(steps, draws)
    # Frequent words should not have the low column numbers.
    columns = rng.permutation(m).astype(np.int32)
    indptr = np.arange(0, n * length + 1, length, dtype=np.int32)
    counts = np.ones(n * length, dtype=np.float32)
    X = scipy.sparse.csr_array((counts, columns[words].ravel(), indptr), shape=(n, m))
    X.sum_duplicates()
    share = frequency * lean
    share /= share.sum(axis=1, keepdims=True)
    evidence, is_topical = np.empty(m), np.zeros(m, dtype=bool)
    evidence[columns] = np.log(share[1] / share[0])
    is_topical[columns[topical]] = True
    return X, np.asarray(["left", "right"])[labels], evidence, is_topical


def _timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result
