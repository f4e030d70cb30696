"""[N] Experiments 1 to 4: sparse naive Bayes itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import MultinomialNB

from gpucenters import L2CenterClassifier, SparseMultinomialNB, thresholded_multinomial

from .. import duality
from ..peers import naive_feature_selection
from ..shapes import SHAPES, labels, zipf_text
from .data import TEXTS, read_texts, split, word_counts
from .experiment import Claim, Experiment, Found, Settings
from .limits import limited, timed
from .two_stage import linear_svm

WORDS = r"(?u)\b\w+\b"
SHARES = (0.001, 0.01, 0.05, 0.1, 0.2)


class DualityGap(Experiment):
    """Bounds against k for class sums uniform at random."""

    name, source, seconds = "duality-gap", "[N] Fig. 1", (5, 5)

    def parts(self, settings: Settings) -> list[str]:
        """Numbers of features."""
        return ["m 30", "m 3000"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """The curves of `bench.duality`."""
        return duality.bounds(int(part.split()[1]))

    def draw(self, found: Found, figure: Any) -> None:
        """Both sizes."""
        figure.set_size_inches(11, 4)
        styles = {"psi(k)": "-", "reached": "k.", "psi(k-1)": "--", "psi(k-4)": ":"}
        for axis, (part, curves) in zip(figure.subplots(1, 2), found.items(), strict=True):
            for name, style in styles.items():
                axis.plot(curves["k"], curves[name], style, label=name, markersize=3)
            axis.set(xlabel="k", ylabel="log-likelihood, share of all features", title=part)
            axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """That the gap vanishes, and the bounds are in order."""
        gaps = {p: np.subtract(c["psi(k)"], c["reached"]) for p, c in found.items()}
        ordered = all(
            np.all(np.asarray(c["reached"]) >= np.asarray(c["psi(k-1)"]) - 1e-12)
            for c in found.values()
        )
        return [
            Claim(
                "the duality gap vanishes as m and k grow, within psi(k-4) <= phi(k) <= psi(k)",
                "yes",
                "largest gap "
                + ", ".join(f"{g.max():.1e} at {p}" for p, g in gaps.items())
                + "; within the sharper psi(k-1), too",
                bool(ordered and gaps["m 3000"].max() < gaps["m 30"].max()),
            )
        ]


# --- second stages --------------------------------------------------------------------------------


class _BesideAuthors(Experiment):
    """An experiment that needs the authors' code."""

    def missing(self, settings: Settings) -> str | None:
        """Files, or the authors' package."""
        there = naive_feature_selection() is not None
        return super().missing(settings) if there else "the extra bench is not installed"


class SecondStages(_BesideAuthors):
    """Selected words of MPQA for logistic regression, an SVM and multinomial naive Bayes."""

    name, source, seconds = "second-stages", "[N] Experiment 2", (20, 120)
    files = TEXTS["mpqa"]
    SECOND: ClassVar[dict[str, Callable[[], Any]]] = {
        "logistic": lambda: LogisticRegression(solver="liblinear"),
        "SVM": linear_svm,
        "MNB": MultinomialNB,
    }

    def parts(self, settings: Settings) -> list[str]:
        """One for each split."""
        return settings.numbered(50)

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies: second stage, selector, share."""
        texts, y = read_texts(settings.data, "mpqa")
        data = split(word_counts(texts), y, int(part.split()[1]))
        m, authors = data.train.shape[1], naive_feature_selection()
        rows: dict[str, dict[str, list[float]]] = {second: {} for second in self.SECOND}
        for share in SHARES:
            k = max(1, int(share * m))
            with np.errstate(all="ignore"):
                selected = {
                    "l2-SC": L2CenterClassifier(k=k).fit(data.train, data.y_train).support_,
                    "SMNB": SparseMultinomialNB(k=k).fit(data.unscaled, data.y_train).support_,
                    "SMNB (authors)": np.flatnonzero(
                        authors(k=k).fit(data.unscaled, data.y_train).mask_
                    ),
                    "TMNB": np.argsort(-thresholded_multinomial(data.unscaled, data.y_train))[:k],
                }
            for second, make in self.SECOND.items():
                for name, columns in selected.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model = make().fit(data.train[:, columns], data.y_train)
                    right = accuracy_score(data.y_test, model.predict(data.test[:, columns]))
                    rows[second].setdefault(name, []).append(right)
        return rows

    def draw(self, found: Found, figure: Any) -> None:
        """One panel for each second stage."""
        figure.set_size_inches(14, 4)
        for axis, second in zip(figure.subplots(1, 3, sharey=True), self.SECOND, strict=True):
            for name in next(iter(found.values()))[second]:
                values = self._values(found, second, name)
                axis.errorbar(
                    [100 * share for share in SHARES],
                    values.mean(axis=0),
                    values.std(axis=0),
                    label=name,
                    capsize=2,
                )
            axis.set(xscale="log", xlabel="words (%)", ylabel="accuracy", title=second)
            axis.grid(alpha=0.3)
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """At 10%, for each second stage."""
        claims = []
        for second in self.SECOND:
            names = next(iter(found.values()))[second]
            here = {
                n: self._values(found, second, n).mean(axis=0)[SHARES.index(0.1)] for n in names
            }
            claims.append(
                Claim(
                    f"MPQA at 10% of the words, second stage {second}: l2-SC is on a par with SMNB",
                    "on a par",
                    ", ".join(f"{name} {a:.3f}" for name, a in here.items()),
                    bool(here["l2-SC"] >= here["SMNB (authors)"] - 0.005),
                    "SMNB and TMNB select from counts that are not scaled",
                )
            )
        return claims

    @staticmethod
    def _values(found: Found, second: str, name: str) -> np.ndarray:
        return np.asarray([split[second][name] for split in found.values()])


# --- run times ------------------------------------------------------------------------------------


class RunTimes(_BesideAuthors):
    """Seconds to fit k = 0.1, 1 and 10% of the features, on average, as in Table 3."""

    name, source, seconds = "run-times", "[N] Table 3", (60, 900)
    SETS = ("imdb", "mpqa", "sst2", "amazon")
    files = tuple(file for name in SETS for file in TEXTS[name])
    VECTORS: ClassVar[dict[str, Callable[[], Any]]] = {
        "count": lambda: CountVectorizer(token_pattern=WORDS, dtype=np.float64),
        "tf-idf": lambda: TfidfVectorizer(token_pattern=WORDS),
        "word bigrams": lambda: TfidfVectorizer(token_pattern=WORDS, ngram_range=(1, 2)),
        "char bigrams": lambda: TfidfVectorizer(analyzer="char", ngram_range=(1, 2)),
    }

    def parts(self, settings: Settings) -> list[str]:
        """A set and a kind of vectors each, and the largest shape of the paper."""
        real = [f"{s}, {v}" for s in self.SETS for v in self.VECTORS]
        return real if settings.quick else [*real, "tweets, word bigrams"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Average seconds of ours and of the authors' code."""
        name, vectors = part.split(", ")
        if name == "tweets":  # of the paper's shape, drawn by Zipf's law
            X = SHAPES["twitter-bigram"].make()
            y = labels(X.shape[0], "int")
        else:
            texts, y = read_texts(settings.data, name, 2000 if settings.quick else None)
            X = self.VECTORS[vectors]().fit_transform(texts)
        ks = [max(1, int(share * X.shape[1])) for share in (0.001, 0.01, 0.1)]
        authors = naive_feature_selection()
        kinds: dict[str, Callable[[int], Any]] = {
            "SMNB": lambda k: SparseMultinomialNB(k=k).fit(X, y),
            "SMNB (authors)": lambda k: authors(k=k).fit(X, y),
            "l2-SC": lambda k: L2CenterClassifier(k=k, scale="std").fit(X, y),
        }
        row: dict[str, Any] = {"n": X.shape[0], "m": X.shape[1]}
        for kind, fit in kinds.items():
            outcome = limited(lambda fit=fit: _seconds(fit, ks), settings.limit)
            row[kind] = float(np.mean(outcome.values)) if not outcome.note else None
        return row

    def draw(self, found: Found, figure: Any) -> None:
        """Bars."""
        figure.set_size_inches(11, 6)
        axis = figure.subplots()
        at = np.arange(len(found))
        for number, kind in enumerate(("l2-SC", "SMNB", "SMNB (authors)")):
            values = [row[kind] or np.nan for row in found.values()]
            axis.barh(at + 0.27 * (number - 1), values, 0.26, label=kind)
        names = [f"{part}\n{row['n']:,} x {row['m']:,}" for part, row in found.items()]
        axis.set_yticks(at, names, fontsize=7)
        axis.invert_yaxis()
        axis.set(xscale="log", xlabel="seconds to fit, mean of k = 0.1, 1 and 10%")
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """How much faster than the authors' code, and the paper's largest set."""
        ratios = {
            part: row["SMNB (authors)"] / row["SMNB"]
            for part, row in found.items()
            if row["SMNB (authors)"] and row["SMNB"]
        }
        claims = [
            Claim(
                "SMNB (ours) fits in less time than the authors' code",
                "",
                f"{min(ratios.values()):.1f} to {max(ratios.values()):.1f} times faster",
                min(ratios.values()) >= 1,
                f"least for {min(ratios, key=ratios.__getitem__)}: rows of TfidfVectorizer come "
                "unsorted, and ours sorts them first",
            )
        ]
        large = found.get("tweets, word bigrams")
        if large:
            claims.append(
                Claim(
                    "1.6 million texts x 12 million features are fitted in less than 15 s",
                    "< 15 s",
                    f"SMNB {large['SMNB']:.1f} s, l2-SC {large['l2-SC']:.1f} s",
                    large["SMNB"] < 15,
                    "data of that shape, drawn by Zipf's law; this machine's two cores",
                )
            )
        return claims


def _seconds(fit: Callable[[int], Any], ks: list[int]) -> Any:
    with np.errstate(all="ignore"):
        for k in ks:
            yield timed(lambda k=k: fit(k))[0]


class GainOverTMNB(Experiment):
    """Accuracy of SMNB less that of thresholded multinomial naive Bayes with as many words."""

    name, source, seconds = "gain-over-tmnb", "[N] Experiment 3", (20, 300)
    files = RunTimes.files

    def parts(self, settings: Settings) -> list[str]:
        """Data sets."""
        return [*RunTimes.SETS]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Gains: split, share."""
        texts, y = read_texts(settings.data, part, 4000 if settings.quick else None)
        X, gains = word_counts(texts), []
        for number in range(3 if settings.quick else 10):
            data = split(X, y, number)
            test = data.unscaled_test
            best = np.argsort(-thresholded_multinomial(data.unscaled, data.y_train), kind="stable")
            row = []
            for share in SHARES:
                k = max(1, int(share * X.shape[1]))
                ours = SparseMultinomialNB(k=k).fit(data.unscaled, data.y_train)
                theirs = MultinomialNB().fit(data.unscaled[:, best[:k]], data.y_train)
                row.append(
                    accuracy_score(data.y_test, ours.predict(test))
                    - accuracy_score(data.y_test, theirs.predict(test[:, best[:k]]))
                )
            gains.append(row)
        return {"gains": gains}

    def draw(self, found: Found, figure: Any) -> None:
        """Per cent against the share of words."""
        axis = figure.subplots()
        for name, row in found.items():
            gains = 100 * np.asarray(row["gains"])
            x = [100 * share for share in SHARES]
            axis.errorbar(x, gains.mean(axis=0), gains.std(axis=0), label=name, capsize=2)
        axis.axhline(0, color="k", linewidth=0.5)
        axis.set(xscale="log", xlabel="words (%)", ylabel="accuracy beyond TMNB (points)")
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """That the gain is positive."""
        means = {name: 100 * np.mean(row["gains"], axis=0) for name, row in found.items()}
        return [
            Claim(
                "SMNB is more accurate than TMNB at the same number of words",
                "by up to some tens of per cent",
                "; ".join(f"{n} {g.min():+.1f} to {g.max():+.1f} points" for n, g in means.items()),
                bool(min(g.min() for g in means.values()) > 0),
                "at 0.1 to 20% of the words",
            )
        ]


class TimeAgainstM(Experiment):
    """Seconds to fit against the number of features, at k/m = 5%."""

    name, source, seconds = "time-against-m", "[N] Experiment 4", (10, 60)

    def parts(self, settings: Settings) -> list[str]:
        """Numbers of features."""
        top = 6 if settings.quick else 7
        return [f"m {10**p * f}" for p in range(4, top) for f in (1, 3)]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """20,000 texts of 100 words, drawn by Zipf's law."""
        m = int(part.split()[1])
        X, y = zipf_text(20_000, m, 100, 0.9), labels(20_000, "int")
        kinds = {"SMNB": SparseMultinomialNB, "l2-SC": L2CenterClassifier}
        return {"m": m} | {
            name: timed(lambda kind=kind: kind(k=m // 20).fit(X, y), most=2)[0]
            for name, kind in kinds.items()
        }

    def draw(self, found: Found, figure: Any) -> None:
        """Both axes logarithmic."""
        axis, rows = figure.subplots(), list(found.values())
        for name in ("SMNB", "l2-SC"):
            axis.loglog([r["m"] for r in rows], [r[name] for r in rows], "o-", label=name)
        axis.set(xlabel="features m", ylabel="seconds at k = m / 20")
        axis.grid(alpha=0.3)
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """Slopes of the logarithms."""
        rows = list(found.values())
        m = np.log([r["m"] for r in rows])
        slope = {n: np.polyfit(m, np.log([r[n] for r in rows]), 1)[0] for n in ("SMNB", "l2-SC")}
        return [
            Claim(
                "time grows at most linearly in m at k/m = 5%",
                "sub-linear",
                ", ".join(f"{name}: m^{s:.2f}" for name, s in slope.items()),
                bool(max(slope.values()) <= 1.05),
            )
        ]
