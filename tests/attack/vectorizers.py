"""Random and real texts: the vectorizers of `gpucenters.text` give what scikit-learn's give."""

from __future__ import annotations

import traceback
from functools import cache

import numpy as np
from conftest import DATA
from test_text import assert_same, random_problem

from gpucenters import text
from gpucenters.readers import read

from .report import Report

PROBLEMS, LIMIT = 5_000, 300
SETS = sorted(DATA.glob("*.tsv.gz"))


@cache
def _texts(number: int) -> list[str]:
    return list(read(SETS[number]).X)


def attack(rng: np.random.Generator, report: Report) -> None:
    name = str(rng.choice(["CountVectorizer", "TfidfVectorizer"]))
    text._PART = int(rng.choice([50, 200, 2**22]))
    if SETS and rng.random() < 0.02:
        number = int(rng.integers(len(SETS)))
        whole, (_, options) = _texts(number), random_problem(rng)
        first = int(rng.integers(len(whole)))
        texts, kind, text._PART = whole[first : first + 3000], SETS[number].name, 2**18
    else:
        (texts, options), kind = random_problem(rng), "random texts"
    report.count(kind)
    try:
        report.count("fitted" if assert_same(name, options, texts) else "refused")
    except Exception:
        shown = texts if kind == "random texts" else f"{kind}, from {first} on"
        report.fail(f"{name}: {kind}", shown, options, traceback.format_exc(limit=-2))
