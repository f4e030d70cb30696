"""The figures and tables of the papers on real data, beside the methods that users know.

[C] is *Sparse l1 and l2 Center Classifiers*, [N] *Naive Feature Selection*, [W] the lecture notes
*Linear Classification*. Each experiment writes its numbers (JSON) and a picture (PNG), and
``summary.md`` says which claims hold. What is finished is kept: an interrupted run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..arguments import folder
from .bigrams import Bigrams
from .centers import TEXT_MODELS, CentersAlone, GeneCenters
from .curves import Curves
from .diagonal_discriminants import DiagonalDiscriminants
from .duality_gap import DualityGap
from .experiment import Experiment, Settings
from .gain_over_tmnb import GainOverTMNB
from .genes import GenesTwoStage
from .heart_disease import HeartDisease
from .iris import Iris
from .links import Links
from .outliers import Outliers
from .regularisation_paths import RegularisationPaths
from .rivals import PeersTable
from .run_times import RunTimes
from .runner import draw_all, run_all
from .second_stages import SecondStages
from .text import TextTwoStage
from .time_against_m import TimeAgainstM
from .tuned_stages import CHI2, POISSON, TunedStages

EXPERIMENTS: tuple[Experiment, ...] = (
    TextTwoStage("mpqa", splits=50, seconds=(15, 400), accuracy_at_10=0.815),
    TextTwoStage("sst2", splits=10, seconds=(15, 1100), most=8_000),
    TextTwoStage("imdb", splits=5, seconds=(30, 1200), most=3_000),
    TextTwoStage("sentiment140", splits=5, seconds=(15, 550), most=8_000),
    TunedStages("mpqa", 5, (30, 200), 4_000, ("l2-SC", "l1-logistic", "Lasso")),
    TunedStages("sst2", 2, (60, 220), 8_000),
    TunedStages("imdb", 2, (60, 1150), 3_000),
    TunedStages("sentiment140", 2, (60, 600), 8_000),
    TunedStages("r8", 5, (60, 900), 2_000, (POISSON, "l2-SC", CHI2)),
    Bigrams(),
    GenesTwoStage("singh", (20, 400)),
    GenesTwoStage("chowdary", (20, 400)),
    GenesTwoStage("golub", (20, 400), own=True),
    GenesTwoStage("gordon", (20, 400), own=True),
    GenesTwoStage("shipp", (20, 400), own=True),
    CentersAlone("sst2", TEXT_MODELS, (10, 200)),
    CentersAlone("mpqa", TEXT_MODELS, (10, 60)),
    GeneCenters("singh", (5, 30)),
    Outliers(),
    DualityGap(),
    SecondStages(),
    RunTimes(),
    GainOverTMNB(),
    TimeAgainstM(),
    Iris(),
    HeartDisease(),
    RegularisationPaths(),
    DiagonalDiscriminants(),
    Curves(),
    Links(),
    PeersTable("mpqa", text=True, seconds=(30, 550)),
    PeersTable("singh", text=False, seconds=(50, 550)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    names = [experiment.name for experiment in EXPERIMENTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="experiments")
    parser.add_argument("--quick", action="store_true", help="fewer splits, smaller sets")
    parser.add_argument("--splits", type=int, help="random splits, also in the full run")
    parser.add_argument("--output", default="reproduced", help="folder of numbers and pictures")
    parser.add_argument("--draw", action="store_true", help="draw what --output holds, anew")
    folder(parser)


def run(options: argparse.Namespace) -> None:
    """Run what was asked for."""
    chosen = [e for e in EXPERIMENTS if e.name in options.only]
    limit = 10.0 if options.quick else 120.0
    output = Path(options.output)
    if options.draw:
        draw_all(chosen, output)
    else:
        run_all(chosen, Settings(Path(options.data), options.quick, limit, options.splits), output)
    if options.json:
        every = {e.name: output / f"{e.name}.json" for e in chosen}
        found = {
            name: json.loads(path.read_text()) for name, path in every.items() if path.exists()
        }
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
