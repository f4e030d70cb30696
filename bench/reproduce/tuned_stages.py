"""[C] Fig. 1 and 4 with second stages that are chosen on the training part, rivals' words too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpucenters import L2CenterClassifier, SparsePoissonNB

from .data import TEXTS, Split, read_texts, sizes, split, word_counts
from .experiment import Claim, Experiment, Found, Settings
from .selectors import TEXT, Selector, ranked
from .tuned import INPUTS, tuned
from .two_stage import second_stage

SHARES = (0.01, 0.05, 0.1)
PAPER = "SVM, C=1, counts"
ALONE = "centers alone"
TUNED = "chosen by validation"
CHOICES = [("logistic", inputs) for inputs in INPUTS]
CHOICES += [("SVM", inputs) for inputs in ("counts", "presence", "TF-IDF")]
POISSON, CHI2 = "Poisson, dispersion", "chi2, counts"  # of counts; others select as in [C]
OURS = ("l2-SC", POISSON)
SELECTORS: dict[str, Selector] = TEXT | {
    POISSON: ranked(lambda X, y: SparsePoissonNB(scale="dispersion").fit(X, y).ranking_),
    CHI2: TEXT["chi2"],
}


class TunedStages(Experiment):
    """One data set, random splits as in `TextTwoStage`: each selector before each second stage."""

    source = "beside [C] Fig. 1, 4"

    def __init__(
        self,
        name: str,
        splits: int,
        seconds: tuple[float, float],
        most: int,
        selectors: tuple[str, ...] = ("l2-SC", "l1-logistic"),
    ) -> None:
        self.set, self.splits, self.seconds, self.most = name, splits, seconds, most
        self.selectors, self.name, self.files = selectors, f"tuned-{name}", TEXTS[name]

    def parts(self, settings: Settings) -> list[str]:
        """One for each split."""
        return settings.numbered(self.splits)

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies: selector, second stage, share."""
        texts, y = read_texts(settings.data, self.set, self.most if settings.quick else None)
        X = word_counts(texts)
        data = split(X, y, int(part.split()[1]))
        rows: dict[str, dict[str, list[float]]] = {}
        for name in self.selectors:
            train = data.unscaled if name in (POISSON, CHI2) else data.train
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                selected = [*SELECTORS[name](train, data.y_train, sizes(X.shape[1], SHARES))]
            for _, _, columns in selected:
                for stage, accuracy in _accuracies(data, np.sort(columns)).items():
                    rows.setdefault(name, {}).setdefault(stage, []).append(accuracy)
        return {"m": X.shape[1], "n": data.train.shape[0], "rows": rows}

    def draw(self, found: Found, figure: Any) -> None:
        """For each selector, every second stage against the share."""
        figure.set_size_inches(4 * len(self.selectors) + 3, 5)
        axes = figure.subplots(1, len(self.selectors), sharey=True)
        shares = [100 * share for share in SHARES]
        for axis, (name, stages) in zip(axes, _means(found).items(), strict=True):
            for number, (stage, values) in enumerate(stages.items()):
                axis.plot(
                    shares[: len(values)],
                    values,
                    label=stage,
                    color="black" if stage in (PAPER, TUNED) else f"C{number % 10}",
                    marker="osv^Dxp*hP"[number % 10],
                    linestyle="--" if stage in (PAPER, ALONE) else "-",
                )
            axis.set(xscale="log", xlabel="selected words (%)", title=name)
            axis.set_xticks(shares, [f"{share:g}" for share in shares])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("accuracy")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        figure.suptitle(f"{self.set}, {len(found)} splits, C chosen on the training part")

    def claims(self, found: Found) -> list[Claim]:
        """Our best pipeline beside the best rival at each share, and all accuracies."""
        means = _means(found)
        claims = []
        for at, share in enumerate(SHARES):
            reached = [
                (float(stages[stage][at]), f"{name}, {stage}", name in OURS)
                for name, stages in means.items()
                for stage in (TUNED, PAPER, ALONE)
                if at < len(stages[stage]) and (stage != ALONE or name in OURS)
            ]
            ours, rival = (max(r for r in reached if r[2] is own) for own in (True, False))
            less = ours[0] - rival[0]
            why = "" if less >= -0.005 else "; its words are chosen jointly, ours each on its own"
            claims.append(
                Claim(
                    f"{self.set} at {share:.0%} of the words: with second stages chosen on the "
                    "training part, the best of ours is within 0.005 of the best rival",
                    "",
                    f"{ours[1]} {ours[0]:.3f} against {rival[1]} {rival[0]:.3f}",
                    less >= -0.005,
                    f"{less:+.3f}; {len(found)} splits{why}",
                )
            )
        shares = " / ".join(f"{share:.0%}" for share in SHARES)
        claims += [
            Claim(
                f"{self.set}: {name}, {stage}, at {shares} of the words",
                "",
                " / ".join(f"{value:.3f}" for value in values),
            )
            for name, stages in means.items()
            for stage, values in stages.items()
            if name in OURS or stage in (PAPER, TUNED)
        ]
        return claims


def _accuracies(data: Split, columns: np.ndarray) -> dict[str, float]:
    """The test accuracy of each second stage on some columns."""
    y, t = data.y_train, data.y_test
    X, there = data.unscaled[:, columns], data.unscaled_test[:, columns]
    scaled, scaled_there = data.train[:, columns], data.test[:, columns]
    found = {
        PAPER: second_stage(scaled, y).score(scaled_there, t),
        ALONE: L2CenterClassifier().fit(scaled, y).score(scaled_there, t),
        TUNED: 0.0,
    }
    best = -1.0
    for stage, inputs in CHOICES:
        model = tuned(inputs, stage, X, y)
        accuracy = found[f"{stage}, {inputs}"] = model.score(there, t)
        if model.best_score_ > best:
            best, found[TUNED] = model.best_score_, accuracy
    return found


def _means(found: Found) -> dict[str, dict[str, np.ndarray]]:
    """Means over the splits, for the shares that a selector reached in all of them."""
    splits = [split["rows"] for split in found.values()]
    means: dict[str, dict[str, np.ndarray]] = {}
    for name in splits[0]:
        for stage in splits[0][name]:
            least = min(len(rows[name][stage]) for rows in splits)
            values = [rows[name][stage][:least] for rows in splits]
            means.setdefault(name, {})[stage] = np.mean(values, axis=0)
    return means
