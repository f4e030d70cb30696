"""[C] Fig. 2: genes are selected for a linear SVM."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from . import two_stage
from .data import read_genes, sizes, split
from .experiment import Claim, Experiment, Found, Settings
from .selectors import GENES


class GenesTwoStage(Experiment):
    """One data set, 80/20 random splits, expressions shifted to be positive."""

    def __init__(self, name: str, seconds: tuple[float, float], own: bool = False) -> None:
        self.set, self.seconds = name, seconds
        self.name, self.files = f"genes-{name}", (f"{name}.npz",)
        self.source = "beside [C] Fig. 2" if own else "[C] Fig. 2"

    def parts(self, settings: Settings) -> list[str]:
        """One for each split."""
        return settings.numbered(50)

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """All methods on one split."""
        X, y = read_genes(settings.data, self.set)
        # (Differences, medians and so the center classifiers do not change with the shift.)
        data = split(X, y, int(part.split()[1]), positive=True)
        shares = (0.001, 0.01, 0.1) if settings.quick else (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
        ks = sizes(X.shape[1], shares)
        return two_stage.compare(GENES, data, ks, balanced_accuracy_score, settings.limit, found)

    def draw(self, found: Found, figure: Any) -> None:
        """As in the paper: balanced accuracy, and time."""
        first = next(iter(found.values()))
        title = f"{self.set}, {first['n']} training samples, {first['m']:,} genes"
        two_stage.draw(found, figure, title, "balanced accuracy of the SVM")

    def claims(self, found: Found) -> list[Claim]:
        """That the center classifiers select as well as the best."""
        accuracy = {name: two_stage.at(found, name, "accuracy", 0.01) for name in GENES}
        times = {name: two_stage.ratio(found, name, "l2-SC", 0.01) for name in GENES}
        ours, authors = accuracy["l2-SC"], accuracy["SMNB (authors)"]
        best = max(GENES, key=lambda name: np.nan_to_num(accuracy[name]))
        return [
            Claim(
                "l2-SC + SVM with 1% of the genes is as accurate (balanced) as SMNB + SVM",
                "on a par",
                f"{ours:.3f} and l1-SC {accuracy['l1-SC']:.3f} against {authors:.3f}",
                ours >= authors - 0.01,
                f"best here: {best}, {accuracy[best]:.3f} (l2-SC {ours - accuracy[best]:+.3f})",
            ),
            Claim(
                "l2-SC selects genes faster than SMNB and penalised models",
                "faster",
                "times its seconds at 1%: "
                + ", ".join(f"{n} {times[n]:,.1f}" for n in GENES if n != "l2-SC"),
                bool(times["SMNB (authors)"] >= 1),
                "nan: over the time limit, or no penalty leaves so many features",
            ),
        ]
