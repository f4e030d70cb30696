"""[W] Linear and quadratic discriminants of iris."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from gpucenters import MahalanobisCenterClassifier

from .experiment import Claim, Experiment, Found, Settings


class Iris(Experiment):
    """Linear and quadratic discriminants, and the pairs of columns."""

    name, source, seconds = "iris", "[W] iris", (2, 2)

    def parts(self, settings: Settings) -> list[str]:
        """One."""
        return ["training errors"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Training errors of both rules."""
        X, y = load_iris(return_X_y=True)
        rules = {"LDA": MahalanobisCenterClassifier(), "QDA": QuadraticDiscriminantAnalysis()}
        return {name: 1 - float(rule.fit(X, y).score(X, y)) for name, rule in rules.items()}

    def draw(self, found: Found, figure: Any) -> None:
        """Each pair of columns."""
        data = load_iris()
        figure.set_size_inches(12, 7)
        axes = figure.subplots(2, 3).ravel()
        for axis, (a, b) in zip(axes, combinations(range(4), 2), strict=True):
            for code, kind in enumerate(data.target_names):
                axis.scatter(*data.data[data.target == code][:, [a, b]].T, s=9, label=kind)
            axis.set(xlabel=data.feature_names[a], ylabel=data.feature_names[b])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        errors = found["training errors"].items()
        figure.suptitle("training errors: " + ", ".join(f"{n} {e:.2f}" for n, e in errors), x=0.2)

    def claims(self, found: Found) -> list[Claim]:
        """0.02 each."""
        errors = found["training errors"]
        here = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
        holds = all(round(error, 2) == 0.02 for error in errors.values())
        why = "LDA: MahalanobisCenterClassifier; QDA: scikit-learn's"
        return [Claim("training errors of LDA and QDA", "0.02 each", here, holds, why)]
