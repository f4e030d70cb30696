"""``gpucenters permute``."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from .data import (
    AsJson,
    DataOptions,
    DataPath,
    Missing,
    TextOptions,
    check_files,
    check_place,
    count_words,
    labelled,
)
from .models import MODELS, Choice, ModelOptions, kind_of
from .output import Stages, say, show_facts, show_json, show_table
from .pictures import figure_of, write_figure

_BINS = 20  # of the histogram


class Permuted(StrEnum):
    """What is exchangeable where there are groups."""

    WITHIN = "within"
    GROUPS = "groups"


def permute(
    data: DataPath,
    *,
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    permutations: Annotated[
        int, typer.Option("--permutations", "-n", min=1, help="Number of label vectors.")
    ] = 1000,
    fdr: Annotated[
        float, typer.Option(min=0, max=1, help="Error rate at which features are counted.")
    ] = 0.05,
    groups: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The group of each sample (batch, donor): one a line."),
    ] = None,
    permuted: Annotated[
        Permuted,
        typer.Option("--permute", help="Labels within each group, or those of whole groups."),
    ] = Permuted.WITHIN,
    seed: Annotated[int, typer.Option(help="Of the permutations.")] = 0,
    top: Annotated[int, typer.Option(min=0, help="Number of features to show.")] = 20,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw error rates and p-values: .png, .svg or .pdf."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all features: .csv, or tabs."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find out how many features tell the classes apart, and how sure each is.

    The gain of each feature is compared with those under shuffled labels. P-values are of each
    feature alone, or adjusted for all (family-wise: Westfall and Young); false discovery rates are
    those of the first features by gain (SAM), and of p-values (q: Benjamini and Hochberg). They say
    nothing of how well a model predicts: see path.
    """
    if model.estimator is not None and not MODELS[model.estimator.value].has_gains:
        raise typer.BadParameter(
            f"the estimator {model.estimator.value} has no gains of single features to compare."
        )
    if model.k != "all":
        raise typer.BadParameter("all features are compared: leave --k out.")
    if not fdr:
        raise typer.BadParameter("--fdr is an error rate above 0.")
    choice = Choice(model)
    check_place(output, data, reading.labels, groups)
    check_place(plot, data, reading.labels, groups, output)
    check_files(data, reading.labels, groups)
    figure = None if plot is None else figure_of(plot)
    vectorizer = text.make()
    from ..estimators.permutation import permutation_gains
    from .trained import filled, medians_of

    stages = Stages()
    with stages("reading"):
        found = labelled(reading.read(data), data)
        of_samples = None if groups is None else reading.groups(groups)
    estimator = choice.model(kind_of(found))
    X, names = found.X, found.feature_names
    if reading.missing is Missing.MEDIAN:
        X = filled(X, medians_of(found, data, can_drop=reading.can_drop(data)))
    if found.is_text:
        with stages("vectorising"):
            X = count_words(vectorizer, X, data)
        names = getattr(vectorizer, "get_feature_names_out", lambda: None)()
    choice.warn_of_spread(X)
    on_terminal = sys.stderr.isatty()
    with stages("permuting", spinner=False):
        gains = permutation_gains(
            estimator,
            X,
            found.y,
            permutations,
            of_samples,
            seed,
            on_terminal,
            permute=permuted.value,
        )
    rows = _Table(gains, names)
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
    if figure is not None:
        _draw(gains, rows.fdr, fdr, figure)
        write_figure(figure, str(plot))
    if output is not None:
        rows.write(output)
    if json:
        show_json(facts | {"top": rows.first(top), "seconds": stages.seconds})
    elif output != "-":
        show_facts(facts)
        rows.show(top)
        say(stages)


class _Table:
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
        from .writers import Rows, opened

        with opened(output) as file:
            rows = Rows(file, output)
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
