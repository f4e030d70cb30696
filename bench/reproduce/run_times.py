"""[N] Table 3: run times for four kinds of text vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from gpucenters import L2CenterClassifier, SparseMultinomialNB

from ..peers import naive_feature_selection
from ..shapes import SHAPES, labels
from .data import TEXTS, read_texts
from .experiment import BesideAuthors, Claim, Found, Settings
from .limits import limited, timed

WORDS = r"(?u)\b\w+\b"


class RunTimes(BesideAuthors):
    """Seconds to fit k = 0.1, 1 and 10% of the features, on average, as in Table 3."""

    name, source, seconds = "run-times", "[N] Table 3", (60, 180)
    title = "Seconds to fit four kinds of text vectors"
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
        faster = sum(ratio >= 1 for ratio in ratios.values())
        claims = [
            Claim(
                "SMNB (ours) fits in less time than the authors' code",
                "",
                f"{min(ratios.values()):.2f} to {max(ratios.values()):.1f} times as fast; "
                f"faster on {faster} of {len(ratios)}",
                min(ratios.values()) >= 1,
                f"least for {min(ratios, key=ratios.__getitem__)}: where a fit takes a few "
                "milliseconds, up to one of them goes to the certified solution of the dual, and a "
                "tenth of all to the search for entries that a row stores twice",
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
