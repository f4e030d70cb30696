"""[C] Fig. 5 and 6: synthetic data with outliers, where l1 and l2 centers cross.

The classes differ in 2% of the features: values there are normal with unit variance around 0 or 1
with probability 1 - p, and uniform on [0, 5] with probability p, in training and in test samples.
The other features are standard normal in both classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpucenters import L1CenterClassifier, L2CenterClassifier, sparsity_path
from gpucenters.paths.drawing import numbers_of_features

from .experiment import Claim, Experiment, Found, Settings

FEATURES, TRAIN, TEST, SHARE = 1000, 200, 1000, 0.02
MODELS = {"l1-SC": L1CenterClassifier(), "l2-SC": L2CenterClassifier()}


def sample(n: int, p: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Balanced classes."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, FEATURES))
    informative = X[:, : int(SHARE * FEATURES)]
    informative += y[:, None]
    hit = rng.random(informative.shape) < p
    informative[hit] = rng.uniform(0, 5, hit.sum())
    return X, y


class Outliers(Experiment):
    """Accuracy of both centers for each share of outliers."""

    name, source, seconds = "outliers", "[C] Fig. 5, 6", (20, 120)
    title = "Outliers in a share p of the informative values"

    def parts(self, settings: Settings) -> list[str]:
        """One for each p."""
        return [f"p {p / 10}" for p in range(10)]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Mean accuracies over random data sets."""
        p, rng = float(part.split()[1]), np.random.default_rng(0)
        ks = np.unique(np.geomspace(1, FEATURES, 20).round().astype(int)).tolist()
        ks = sorted({*ks, int(SHARE * FEATURES)})
        scores: dict[str, list[Any]] = {name: [] for name in MODELS}
        for _ in range(10 if settings.quick else 100):
            (X, y), (X_test, y_test) = sample(TRAIN, p, rng), sample(TEST, p, rng)
            for name, model in MODELS.items():
                path = sparsity_path(model, X, y, ks=ks, X_test=X_test, y_test=y_test)
                scores[name].append(path.mean)
        means = {name: np.mean(rows, axis=0).tolist() for name, rows in scores.items()}
        errors = {name: np.std(rows, axis=0).tolist() for name, rows in scores.items()}
        return {"p": p, "k": ks, "mean": means, "std": errors}

    def draw(self, found: Found, figure: Any) -> None:
        """Against k for three p, and against p at the true number of features."""
        figure.set_size_inches(12, 4.5)
        left, right = figure.subplots(1, 2)
        rows = list(found.values())
        for row, style in zip(rows[::4], ("-", "--", ":"), strict=False):
            for number, name in enumerate(MODELS):
                label = f"{name}, p = {row['p']}"
                left.plot(row["k"], row["mean"][name], style, color=f"C{number}", label=label)
        numbers_of_features(left)
        left.set_ylabel("accuracy")
        for name in MODELS:
            mean, std = self._at_truth(rows, name)
            right.errorbar([row["p"] for row in rows], mean, std, label=name, capsize=2)
        right.set(xlabel="p, the share of outliers", ylabel=f"accuracy at k = {SHARE:.0%}")
        left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        right.legend()
        for axis in (left, right):
            axis.grid(alpha=0.3)

    def claims(self, found: Found) -> list[Claim]:
        """That the curves cross."""
        rows = list(found.values())
        ahead = np.subtract(self._at_truth(rows, "l1-SC")[0], self._at_truth(rows, "l2-SC")[0])
        where = [str(row["p"]) for row, d in zip(rows, ahead, strict=True) if d > 0]
        return [
            Claim(
                "l2-SC is ahead without outliers, and l1-SC with a share p of them",
                "the curves cross",
                f"l1 less l2: {ahead[0]:+.3f} at p = 0, {ahead.max():+.3f} at most"
                + (f", ahead at p = {', '.join(where)}" if where else ""),
                bool(ahead[0] < 0 < ahead.max()),
                f"{TRAIN} training samples x {FEATURES} features, class means 0 and 1; the paper's "
                "sizes may differ. Where most values are outliers, medians move with them",
            )
        ]

    @staticmethod
    def _at_truth(rows: list[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
        where = rows[0]["k"].index(int(SHARE * FEATURES))
        return [r["mean"][name][where] for r in rows], [r["std"][name][where] for r in rows]
