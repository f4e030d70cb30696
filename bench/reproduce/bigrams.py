"""Wang & Manning, *Baselines and Bigrams*, Tables 2 and 3: words and pairs of words."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from gpucenters import L2CenterClassifier, SparseMultinomialNB
from gpucenters.readers import read
from gpucenters.text import CountVectorizer

from .experiment import Claim, Experiment, Found, Settings
from .tuned import tuned

SHARES = (0.01, 0.1, 1.0)
OURS, BAYES, PLAIN = "log ratios, logistic", "naive Bayes alone", "presence, logistic"
#: With words, and with words and pairs: NBSVM of the paper, and multinomial naive Bayes.
PRINTED = {
    "mpqa": {OURS: (0.853, 0.863), BAYES: (0.853, 0.863)},
    "cr": {OURS: (0.805, 0.818), BAYES: (0.798, 0.800)},
    "mr": {OURS: (0.781, 0.794), BAYES: (0.779, 0.790)},
    "subj": {OURS: (0.924, 0.932), BAYES: (0.926, 0.936)},
    "imdb": {OURS: (0.8829, 0.9122), BAYES: (0.8355, 0.8659)},
}
#: Sets with a split of their own: files to train and to test on. SST-2 is not in the paper.
SPLIT = {
    "imdb": ("imdb.train.tsv.gz", "imdb.test.tsv.gz"),
    "sst2": ("sst2.phrases.train.tsv.gz", "sst2.sentences.test.tsv.gz"),
}
SETS = (*PRINTED, "sst2")


class Bigrams(Experiment):
    """Presence of words: times log ratios before logistic regression, and naive Bayes alone."""

    title = "A share of the words, or of words and pairs, beside NBSVM with all of them"
    name, source, seconds = "bigrams", "Wang & Manning, Tables 2 and 3", (60, 900)
    files = (
        *(f"{name}.tsv.gz" for name in SETS if name not in SPLIT),
        *(file for files in SPLIT.values() for file in files),
    )

    def parts(self, settings: Settings) -> list[str]:
        """One for each data set and length of n-grams."""
        names = SETS[: 2 if settings.quick else None]
        return [f"{name} {n}" for name in names for n in (1, 2)]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracy at each share, the mean over the folds."""
        name, n = part.split()
        if name in SPLIT:
            train, test = (read(settings.data / file) for file in SPLIT[name])
            folds = [(train.X, np.asarray(train.y), test.X, np.asarray(test.y))]
        else:
            folds = _folds(read(settings.data / f"{name}.tsv.gz"), 3 if settings.quick else 10)
        rows = [_accuracies(*fold, int(n)) for fold in folds]
        means = {name: np.mean([row[name] for row in rows], axis=0).tolist() for name in rows[0]}
        return {"folds": len(folds), "accuracy": means}

    def draw(self, found: Found, figure: Any) -> None:
        """Accuracy against the share of the n-grams, beside NBSVM with all of them."""
        names = list(dict.fromkeys(part.split()[0] for part in found))
        figure.set_size_inches(3 * len(names), 5)
        for axis, name in zip(figure.subplots(1, len(names)), names, strict=True):
            for n, label in ((1, "words"), (2, "words and pairs")):
                for stage, values in found[f"{name} {n}"]["accuracy"].items():
                    style = {OURS: "o-", BAYES: "x--", PLAIN: "+-."}[stage]
                    shares = [100 * share for share in SHARES]
                    axis.plot(shares, values, style, color=f"C{n}", label=f"{label}: {stage}")
                if name in PRINTED:
                    printed = PRINTED[name][OURS][n - 1]
                    axis.axhline(printed, color=f"C{n}", ls=":", label=f"{label}: NBSVM, printed")
            axis.set(xscale="log", xlabel="selected (%)", title=name)
            axis.set_xticks(shares, [f"{share:g}" for share in shares])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        figure.axes[0].set_ylabel("accuracy")
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3
        )

    def claims(self, found: Found) -> list[Claim]:
        """For each set and length, beside NBSVM."""
        claims = []
        for part, row in found.items():
            name, n = part.split()
            here = {
                s: " / ".join(f"{a:.3f}" for a in values) for s, values in row["accuracy"].items()
            }
            protocol = f"{row['folds']} folds, others than theirs"
            says = (
                f"{name}, {'words' if n == '1' else 'words and pairs'}, 1 / 10 / 100% of them: log "
                "ratios and logistic regression"
            )
            alone = f"presence itself {here[PLAIN]}, naive Bayes alone {here[BAYES]}"
            if name not in PRINTED:
                claims.append(Claim(says, "", here[OURS], None, f"the split of the set; {alone}"))
                continue
            printed = {stage: PRINTED[name][stage][int(n) - 1] for stage in (OURS, BAYES)}
            claims.append(
                Claim(
                    f"{says}; with all, on a par with NBSVM",
                    f"{printed[OURS]:.3f} (all)",
                    here[OURS],
                    bool(row["accuracy"][OURS][-1] >= printed[OURS] - 0.01),
                    f"{'their split' if name in SPLIT else protocol}; our words; C by validation "
                    "where theirs is fixed, logistic loss, no interpolation with naive Bayes; "
                    f"{alone}, in the paper {printed[BAYES]:.3f}",
                )
            )
        return claims


def _folds(data: Any, number: int) -> list[tuple[Any, ...]]:
    """(training texts, classes, test texts, classes) of each fold."""
    y = np.asarray(data.y)
    parts = StratifiedKFold(number, shuffle=True, random_state=0).split(y, y)
    return [
        ([data.X[i] for i in train], y[train], [data.X[i] for i in test], y[test])
        for train, test in parts
    ]


def _accuracies(texts: Any, y: Any, test: Any, y_test: Any, n: int) -> dict[str, list[float]]:
    """Accuracies at each share of the n-grams of the training texts."""
    vectorizer = CountVectorizer(
        binary=True, ngram_range=(1, n), token_pattern=r"(?u)\b\w+\b", dtype=np.float64
    )
    X, there = vectorizer.fit_transform(texts), vectorizer.transform(test)
    model, bayes = L2CenterClassifier(scale="std").fit(X, y), SparseMultinomialNB().fit(X, y)
    found: dict[str, list[float]] = {OURS: [], BAYES: [], PLAIN: []}
    for share in SHARES:
        columns = model.with_k(share).support_
        for stage, inputs in ((OURS, "log ratios"), (PLAIN, "presence")):
            second = tuned(inputs, "logistic", X[:, columns], y)
            found[stage].append(float(second.score(there[:, columns], y_test)))
        found[BAYES].append(float(bayes.with_k(share).score(there, y_test)))
    return found
