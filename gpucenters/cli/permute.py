"""``gpucenters permute``."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from .models import MODELS, Choice, ModelOptions
from .options import AsJson, DataOptions, DataPath, TextOptions, option
from .output import Stages, say, show_facts, show_json, show_table
from .writers import Picture, RowWriter, check_files, opened

_BINS = 20  # of the histogram


def permute(
    data: DataPath,
    *,
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    permutations: Annotated[
        int, option("Number of label vectors.", "--permutations", "-n", min=1)
    ] = 1000,
    fdr: Annotated[float, option("Error rate at which features are counted.", min=0, max=1)] = 0.05,
    groups: Annotated[
        str | None,
        option("The group of each sample (batch, donor): one a line.", metavar="FILE"),
    ] = None,
    permuted: Annotated[
        str,
        option(
            "Labels within each group, or those of whole groups.",
            "--permute",
            values="within|groups",
        ),
    ] = "within",
    seed: Annotated[int, option("Of the permutations.")] = 0,
    top: Annotated[int, option("Number of features to show.", min=0)] = 20,
    plot: Annotated[
        str | None,
        option("Draw error rates and p-values: .png, .svg or .pdf.", metavar="FILE"),
    ] = None,
    output: Annotated[
        str | None,
        option("Write all features: .csv, or tabs.", "--output", "-o", metavar="FILE"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find out how many features tell the classes apart, and how sure each is.

    The gain of each feature is compared with those under shuffled labels. P-values are of each
    feature alone, or adjusted for all (family-wise: Westfall and Young); false discovery rates are
    those of the first features by gain (SAM), and of p-values (q: Benjamini and Hochberg). They say
    nothing of how well a model predicts: see path.
    """
    if model.estimator is not None and not MODELS[model.estimator].has_gains:
        raise typer.BadParameter(
            f"the estimator {model.estimator} has no gains of single features to compare."
        )
    if model.k != "all":
        raise typer.BadParameter("all features are compared: leave --k out.")
    if not fdr:
        raise typer.BadParameter("--fdr is an error rate above 0.")
    choice, vectorizer = Choice(model), text.make()
    check_files([output, plot], [data, reading.labels, groups])
    picture = None if plot is None else Picture(plot)
    from ..estimators.permutation import permutation_gains
    from .features import prepare

    stages = Stages()
    with stages("reading"):
        found = reading.read_labelled(data)
        of_samples = None if groups is None else reading.groups(groups)
    estimator, X, features = prepare(found, data, reading, vectorizer, choice, stages)
    names = found.feature_names
    if features.vectorizer is not None:
        names = getattr(features.vectorizer, "get_feature_names_out", lambda: None)()
    with stages("permuting", spinner=False):
        gains = permutation_gains(
            estimator,
            X,
            found.y,
            permutations,
            of_samples,
            seed,
            sys.stderr.isatty(),
            permute=permuted,
        )
    rows = _Ranking(gains, names)
    facts = {
        "model": type(estimator).__name__,
        "samples": len(found),
        "features": X.shape[1],
        "permutations": gains.n_permutations,
        "exact": gains.exact,
        "error_rate": fdr,
        "features_at_false_discovery_rate": gains.k_at(fdr),
        "features_at_q": int((gains.qvalues <= fdr).sum()),
        "features_at_family_wise_rate": int((gains.pvalues_fwer <= fdr).sum()),
    }
    if picture is not None:
        _draw(gains, rows.fdr, fdr, picture.figure)
        picture.write()
    if output is not None:
        rows.write(output)
    if json:
        show_json(facts | {"top": rows.first(top), "seconds": stages.seconds})
    elif output != "-":
        show_facts(facts)
        rows.show(top)
        say(stages)


class _Ranking:
    """The features by gain, and how sure each is."""

    HEAD = ("feature", "column", "gain", "pvalue", "pvalue_fwer", "qvalue", "fdr")

    def __init__(self, gains: Any, names: Any) -> None:
        import numpy as np

        from ..solvers.selection import ranking_key

        order = gains.ranking
        keys = -ranking_key(gains.scores[order])
        estimate = gains.false_discoveries[order] / np.searchsorted(keys, keys, side="right")
        # Of as many features or more, as `k_at` reads it: with more the estimate may be less.
        self.fdr = np.minimum(np.minimum.accumulate(estimate[::-1])[::-1], 1.0)
        self._columns = [
            [f"column {i}" for i in order] if names is None else [str(names[i]) for i in order],
            order.tolist(),
            *(x[order].tolist() for x in (gains.scores, gains.pvalues, gains.pvalues_fwer)),
            gains.qvalues[order].tolist(),
            self.fdr.tolist(),
        ]

    def first(self, top: int) -> list[dict[str, Any]]:
        """The first rows, for JSON."""
        rows = zip(*(column[:top] for column in self._columns), strict=True)
        return [dict(zip(self.HEAD, row, strict=True)) for row in rows]

    def write(self, output: str) -> None:
        """Write all rows."""
        with opened(output) as file:
            rows = RowWriter(file, output)
            rows.write(list(self.HEAD))
            for row in zip(*self._columns, strict=True):
                rows.write(list(row))

    def show(self, top: int) -> None:
        """Print the first rows."""
        names = ("gain", "p", "p, family-wise", "q", "false discovery rate")
        head = {"": "right", "feature": "left"} | dict.fromkeys(names, "right")
        rows = [
            [i, row["feature"], *(f"{row[name]:.4g}" for name in self.HEAD[2:])]
            for i, row in enumerate(self.first(top), 1)
        ]
        if rows:
            show_table(f"Features by gain, {len(rows):,} of {len(self.fdr):,}", head, rows)


def _draw(gains: Any, fdr: Any, rate: float, figure: Any) -> None:
    """Error rates against the number of features, and the histogram of the p-values."""
    import numpy as np

    from ..paths.drawing import numbers_of_features

    figure.set_figwidth(1.6 * figure.get_figwidth())
    left, right = figure.subplots(1, 2)
    m = len(fdr)
    ks = np.arange(1, m + 1)
    for label, values in (
        ("false discovery rate of the first k", fdr),
        ("q of the k least p-values", np.sort(gains.qvalues)),
        ("family-wise p of the k least", np.sort(gains.pvalues_fwer)),
    ):
        left.plot(ks, values, label=label)
    left.axhline(rate, color="0.5", linestyle=":", label=f"error rate {rate:g}")
    numbers_of_features(left)
    left.set_ylim(0, 1.02)
    left.set_xlabel("number of features k")
    left.set_ylabel("error rate")
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    right.hist(gains.pvalues, bins=np.linspace(0, 1, _BINS + 1))
    right.axhline(m / _BINS, color="0.5", linestyle=":", label="if no feature differed")
    right.set_xlabel("p-value of a feature")
    right.set_ylabel("number of features")
    right.legend(loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
