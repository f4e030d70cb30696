"""[C] Fig. 3 and 7: the center classifiers alone, every number of features from one fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpucenters import L1CenterClassifier, L2CenterClassifier, SparseMultinomialNB, sparsity_path

from .data import TEXTS, read_genes, read_texts, word_counts
from .experiment import Claim, Experiment, Found, Settings, percent

L2, L1 = L2CenterClassifier(scale="std"), L1CenterClassifier(scale="std")


class CentersAlone(Experiment):
    """Accuracies of models on one data set, 80/20 random splits."""

    source = "[C] Fig. 3"
    quick_splits = 5

    def __init__(self, name: str, models: dict[str, Any], seconds: tuple[float, float]) -> None:
        self.set, self.models, self.seconds = name, models, seconds
        self.name, self.measure = f"centers-{name}", "accuracy"
        self.files = TEXTS.get(name, (f"{name}.npz",))

    def data(self, settings: Settings) -> tuple[Any, np.ndarray]:
        """Word counts and classes."""
        texts, y = read_texts(settings.data, self.set, 10_000 if settings.quick else None)
        return word_counts(texts), y

    def parts(self, settings: Settings) -> list[str]:
        """One for each model."""
        return list(self.models)

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Means and deviations of a model for all numbers of features."""
        X, y = self.data(settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = sparsity_path(
                self.models[part],
                X,
                y,
                n_splits=self.quick_splits if settings.quick else 50,
                random_state=0,
                scoring=self.measure,
            )
        shares = (np.asarray(path.ks) / X.shape[1]).tolist()
        return {"share": shares, "mean": path.mean.tolist(), "std": path.std.tolist()}

    def draw(self, found: Found, figure: Any) -> None:
        """Bands of one standard deviation."""
        axis = figure.subplots()
        for name, row in found.items():
            share, mean, std = (np.asarray(row[key]) for key in ("share", "mean", "std"))
            axis.plot(100 * share, mean, label=name)
            axis.fill_between(100 * share, mean - std, mean + std, alpha=0.2)
        percent(axis, "features", f"{self.measure.replace('_', ' ')}, ± 1 standard deviation")
        axis.set_title(f"{self.set}: models alone")
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """How good l2-SC is as a classifier."""
        l2, other = at(found["l2-SC"], 0.1), at(found["SMNB"], 0.1)
        printed = "about 0.81" if self.set == "mpqa" else "on a par with SMNB"
        return [
            Claim(
                "l2-SC alone, at 10% of the words",
                printed,
                f"{l2:.3f} (SMNB as a classifier {other:.3f})",
                l2 >= (0.805 if self.set == "mpqa" else other - 0.01),
                f"with all words l2-SC {found['l2-SC']['mean'][-1]:.3f}, SMNB "
                f"{found['SMNB']['mean'][-1]:.3f}",
            )
        ]


class GeneCenters(CentersAlone):
    """Singh: l1 against l2."""

    source = "[C] Fig. 3, 7"
    quick_splits = 50

    def __init__(self, name: str, seconds: tuple[float, float]) -> None:
        super().__init__(name, {"l1-SC": L1, "l2-SC": L2}, seconds)
        self.measure = "balanced_accuracy"

    def data(self, settings: Settings) -> tuple[Any, np.ndarray]:
        """Expressions and classes."""
        return read_genes(settings.data, self.set)

    def claims(self, found: Found) -> list[Claim]:
        """Where l1 is best, and that it is ahead of l2 with many genes."""
        l1, l2 = found["l1-SC"], found["l2-SC"]
        best = int(np.argmax(l1["mean"]))
        share, top = 100 * l1["share"][best], l1["mean"][best]
        many = [(at(l1, s), at(l2, s)) for s in (0.1, 1.0)]
        return [
            Claim(
                "l1-SC is best at 0.05 to 0.5% of the genes (balanced accuracy)",
                "about 0.92",
                f"{top:.3f} at {share:.2f}%",
                0.05 <= share <= 0.5 if self.set == "singh" else None,
                f"standard deviation over splits {l1['std'][best]:.3f}; l2-SC's own best is "
                f"{max(l2['mean']):.3f} at {100 * l2['share'][int(np.argmax(l2['mean']))]:.2f}%",
            ),
            Claim(
                "l1-SC is ahead of l2-SC at 10% and 100% of the genes",
                "yes",
                ", ".join(f"{a:.3f} against {b:.3f}" for a, b in many),
                all(a > b for a, b in many),
                "one gene's outliers move a mean, not a median",
            ),
        ]


def at(row: dict[str, list[float]], share: float) -> float:
    """A mean at the number of features nearest to a share."""
    return row["mean"][int(np.argmin(np.abs(np.log(np.asarray(row["share"]) / share))))]


TEXT_MODELS = {"l2-SC": L2, "SMNB": SparseMultinomialNB()}
