"""The main job on two data sets: what the models choose, how well they predict, how long it takes.

The demo plays the user, so it makes its data with NumPy and SciPy.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    permutation_gains,
    sparsity_path,
)

from ..estimators.fitted import FittedModel
from .output import console, show_table

N_DOCUMENTS, N_WORDS, LENGTH = 200_000, 100_000, 12
N_TOPICAL, LEAN = 500, 6.0  # words that one class uses more often, and how much more

_NEXT = """\
Next, on the command line (each has --help):
  gpucenters fit DATA -o MODEL      fit to your own text, table or matrix file
  gpucenters path DATA              how many features are enough
  gpucenters inspect MODEL          which features, and the centers of the classes
  gpucenters predict MODEL DATA     the classes of new samples
  gpucenters check --device cuda    whether your GPU computes what the CPU does, and how fast

In Python: L2CenterClassifier, SparseBernoulliNB and the other models have fit, with_k, predict,
transform and save; load, sparsity_path, SparsityPathCV, permutation_gains and plot_centers are in
gpucenters too. The README says which model for which data."""


def run_demo(device: str) -> None:
    """Print the demo."""
    _breast_cancer(device)
    _text(device)
    _say("\n" + _NEXT)


def _say(text: str) -> None:
    console().print(text)


def _breast_cancer(device: str) -> None:
    data = load_breast_cancer()
    X, y, names = data.data, data.target, data.feature_names
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    _say(
        "\nWhich measurements tell malignant from benign tumours, and how many are enough?\n"
        f"Breast cancer (real, from scikit-learn): {len(X_train)} samples to fit, {len(X_test)} "
        f"held out, {X.shape[1]} features."
    )
    l2, l1 = (
        kind(k=1, scale="std", device=device).fit(X_train, y_train)
        for kind in (L2CenterClassifier, L1CenterClassifier)
    )
    rows = []
    for k in (1, 3, 5, 10, "all"):
        chosen = names[l2.with_k(k).ranking_]
        more = f" and {len(chosen) - 3} more" if len(chosen) > 3 else ""
        accuracy = [f"{model.with_k(k).score(X_test, y_test):.3f}" for model in (l2, l1)]
        rows.append([k, *accuracy, ", ".join(chosen[:3]) + more])
    head = {"k": "right", "l2 accuracy": "right", "l1 accuracy": "right"}
    head |= {"features of l2, best first": "left"}
    share = max(np.bincount(y_test)) / len(y_test)
    title = "Held-out accuracy with k features: one fit serves every k"
    show_table(f"{title} (share of the larger class: {share:.3f})", head, rows)
    path = sparsity_path(l2, X_train, y_train, ks=(1, 2, 3, 5, 8, 13, 20, "all"))
    found = permutation_gains(l2, X_train, y_train, n_permutations=200, random_state=0)
    _say(
        f"\nCross-validation on the samples to fit (sparsity_path):\n{path}\n\n"
        f"By permutation_gains, {found.k_at(fdr=0.05)} features tell the classes apart, at a false "
        "discovery rate of 5%."
    )


def _text(device: str) -> None:
    X, y, evidence, is_topical = make_text(N_DOCUMENTS, N_WORDS, LENGTH, N_TOPICAL, seed=0)
    half = N_DOCUMENTS // 2
    train, test = slice(0, half), slice(half, None)
    # The best there is: by the probabilities that the words were drawn with.
    ceiling = np.mean(np.where(X[test] @ evidence > 0, "right", "left") == y[test])
    _say(
        f"\nDoes it find the words that matter, in a sparse matrix that would take "
        f"{N_DOCUMENTS * N_WORDS * 4 / 1e9:.0f} GB as a dense one?\n"
        f"Synthetic text: {N_DOCUMENTS:,} documents x {N_WORDS:,} words, {X.nnz:,} stored counts.\n"
        f"{N_TOPICAL} words are used {LEAN:g} times as often by one class; the rest is noise.\n"
        f"Who knew how the words were drawn would be right in {ceiling:.3f} of the half held out."
    )
    models = {
        "l2": L2CenterClassifier(device=device),
        'l2, scale="std"': L2CenterClassifier(scale="std", device=device),
        "Bernoulli": SparseBernoulliNB(device=device),
    }
    took = {
        name: _timed(lambda m=model: m.fit(X[train], y[train])) for name, model in models.items()
    }
    scaled = models['l2, scale="std"']
    rows = []
    for k in (10, 100, 500, 5_000, "all"):
        chosen = scaled.with_k(k)
        hits = np.intersect1d(chosen.support_, np.flatnonzero(is_topical)).size
        accuracy = [f"{model.with_k(k).score(X[test], y[test]):.3f}" for model in models.values()]
        rows.append([f"{k:,}" if isinstance(k, int) else k, *accuracy, f"{hits:,}"])
    head = {"k": "right"} | dict.fromkeys(models, "right") | {"topical words among the k": "right"}
    share = max(np.unique(y[test], return_counts=True)[1]) / half
    show_table(
        f"Held-out accuracy with k words (share of the larger class: {share:.3f})", head, rows
    )
    times = ", ".join(f"{seconds:.2f} s ({name})" for name, seconds in took.items())
    predicting = _timed(lambda: scaled.with_k(N_TOPICAL).predict(X[test]))
    _say(
        f"Fits, for all k at once: {times}; to predict {half:,} documents: {predicting:.2f} s, on "
        f"{FittedModel(scaled).backend}."
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


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
