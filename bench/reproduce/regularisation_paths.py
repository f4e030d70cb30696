"""[W] Regularisation paths, on a set of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from gpucenters import L2CenterClassifier, sparsity_path
from gpucenters.paths.drawing import numbers_of_features

from .data import TEXTS, read_texts, split, word_counts
from .experiment import Claim, Experiment, Found, Settings


class RegularisationPaths(Experiment):
    """MPQA: coefficients of l1-logistic regression and accuracy, beside the path of l2-SC."""

    name, source, seconds = "regularisation-paths", "[W] paths", (10, 60)
    title = "MPQA: the paths of l1-logistic regression and of l2-SC"
    files = TEXTS["mpqa"]

    def parts(self, settings: Settings) -> list[str]:
        """One."""
        return ["split 00"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Coefficients of the words that enter first, and both accuracies."""
        texts, y = read_texts(settings.data, "mpqa", 3000 if settings.quick else None)
        data = split(word_counts(texts), y, 0)
        Cs = 2.0 ** np.arange(-12, 3)
        models = [
            LogisticRegression(C=C, l1_ratio=1, solver="liblinear").fit(data.train, data.y_train)
            for C in Cs
        ]
        w = np.asarray([model.coef_.ravel() for model in models])
        first = np.argsort(-np.count_nonzero(w, axis=0), kind="stable")[:30]
        path = sparsity_path(
            L2CenterClassifier(), data.train, data.y_train, X_test=data.test, y_test=data.y_test
        )
        return {
            "C": Cs.tolist(),
            "coefficients": w[:, first].tolist(),
            "nonzero": np.count_nonzero(w, axis=1).tolist(),
            "l1-logistic": [float(model.score(data.test, data.y_test)) for model in models],
            "k": np.asarray(path.ks).tolist(),
            "l2-SC": path.mean.tolist(),
        }

    def draw(self, found: Found, figure: Any) -> None:
        """Coefficients against the penalty, accuracies against the number of words."""
        row = found["split 00"]
        figure.set_size_inches(12, 4.5)
        left, right = figure.subplots(1, 2)
        left.semilogx(row["C"], row["coefficients"], linewidth=0.8)
        left.set(xlabel="C = 1 / penalty", ylabel="coefficients of the words that enter first")
        right.plot(row["nonzero"], row["l1-logistic"], "o-", label="l1-logistic")
        right.plot(row["k"], row["l2-SC"], label="l2-SC, one fit")
        numbers_of_features(right)
        right.set_ylabel("accuracy")
        right.legend()

    def claims(self, found: Found) -> list[Claim]:
        """Both bests."""
        row = found["split 00"]
        best = {name: max(row[name]) for name in ("l1-logistic", "l2-SC")}
        here = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
        return [Claim("MPQA: best accuracy on the path", "", here, None, "chosen on the test part")]
