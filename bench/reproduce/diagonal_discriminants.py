"""[W] Diagonal discriminants in high dimensions, on gene expressions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from gpucenters import L2CenterClassifier, SparseGaussianNB

from .data import read_genes, split
from .experiment import Claim, Experiment, Found, Settings
from .two_stage import linear_svm


class DiagonalDiscriminants(Experiment):
    """DLDA and DQDA against a linear SVM and sparse logistic regression on gene expressions."""

    name, source, seconds = "diagonal-discriminants", "[W] high dimensions", (20, 200)
    title = "Gene expressions: diagonal discriminants, SVM and l1-logistic"
    SETS = ("alon", "golub", "gordon", "shipp", "singh")
    files = tuple(f"{name}.npz" for name in SETS)

    def parts(self, settings: Settings) -> list[str]:
        """Data sets."""
        return [*self.SETS]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies of each model over the splits."""
        X, y = read_genes(settings.data, part)
        k = 100
        models: dict[str, Callable[[], Any]] = {
            "DLDA": lambda: L2CenterClassifier(scale="pooled", priors="empirical"),
            f"DLDA, k = {k}": lambda: L2CenterClassifier(k=k, scale="pooled", priors="empirical"),
            "DQDA": lambda: SparseGaussianNB(ddof=1),
            f"DQDA, k = {k}": lambda: SparseGaussianNB(k=k, ddof=1),
            "SVM": linear_svm,
            "l1-logistic": lambda: LogisticRegression(l1_ratio=1, solver="liblinear"),
        }
        rows: dict[str, list[float]] = {name: [] for name in models}
        for number in range(2 if settings.quick else 20):
            data = split(X, y, number)
            for name, make in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = make().fit(data.train, data.y_train).predict(data.test)
                rows[name].append(float(accuracy_score(data.y_test, predicted)))
        return rows

    def draw(self, found: Found, figure: Any) -> None:
        """Bars."""
        figure.set_size_inches(10, 4.5)
        axis, models = figure.subplots(), list(next(iter(found.values())))
        for number, model in enumerate(models):
            values = [np.mean(row[model]) for row in found.values()]
            errors = [np.std(row[model]) for row in found.values()]
            at = np.arange(len(found)) + 0.13 * (number - 2.5)
            axis.bar(at, values, 0.13, yerr=errors, label=model, capsize=2)
        axis.set_xticks(range(len(found)), list(found))
        axis.set(ylabel="accuracy, ± 1 standard deviation", ylim=(0.4, 1.05))
        figure.legend(loc="outside right upper")

    def claims(self, found: Found) -> list[Claim]:
        """Means over the data sets."""
        models = next(iter(found.values()))
        mean = {m: float(np.mean([np.mean(row[m]) for row in found.values()])) for m in models}
        best = max(mean, key=mean.__getitem__)
        chosen = max(mean[m] for m in mean if "k =" in m)
        return [
            Claim(
                "few features repair the diagonal rules in high dimensions",
                "",
                ", ".join(f"{name} {value:.3f}" for name, value in mean.items()),
                bool(chosen > max(mean["DLDA"], mean["DQDA"])),
                f"mean accuracy over {len(found)} data sets; best {best}"
                + ("" if "D" in best else f", ours loses by {mean[best] - chosen:.3f}"),
            )
        ]
