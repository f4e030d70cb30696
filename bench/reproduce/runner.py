"""Run experiments part by part, keep what is finished, and write numbers, pictures and a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..timing import machine
from .experiment import Claim, Experiment, Found, Settings
from .limits import limited

ABOUT = """{hold} of {decided} claims hold{quick}.

[C] is Calafiore & Fracastoro, *Sparse l1 and l2 Center Classifiers*; [N] is Askari, d'Aspremont &
El Ghaoui, *Naive Feature Selection*; [W] is the lecture notes *Linear Classification*; Wang &
Manning is *Baselines and Bigrams*. l1-SC and l2-SC are sparse l1 and l2 centers, SMNB is sparse and
TMNB thresholded multinomial naive Bayes. "+ SVM": a linear SVM with C=1 on the selected features
over their deviations, the protocol of [C]; in the experiments `tuned` every second stage has a
ridge that was chosen on the training part. Each experiment has its numbers in a JSON file of its
name, with the machine.

"""
HEAD = (
    "| experiment | what is claimed | in the paper | here | holds | why |\n" + "| --- " * 6 + "|\n"
)


def run_all(
    experiments: Sequence[Experiment],
    settings: Settings,
    output: Path,
    say: Callable[[str], None] = print,
) -> None:
    """Run, draw and sum up; parts that are stored in ``output`` already are not run again."""
    output.mkdir(parents=True, exist_ok=True)
    here = [e for e in experiments if _can_run(e, settings, say)]
    todo = {
        e.name: [p for p in e.parts(settings) if _stored(e, p, settings, output) is None]
        for e in here
    }
    left = sum(_seconds(e, settings) * len(todo[e.name]) for e in here)
    say(f"{sum(map(len, todo.values()))} parts to run: about {left / 60:.0f} minutes on two cores.")
    # (Its monitor is a thread, and `limited` forks.)
    tqdm.monitor_interval = 0
    with tqdm(total=round(left), unit="s", bar_format="{l_bar}{bar}| {elapsed} {postfix}") as bar:
        for experiment in here:
            found: Found = {}
            for part in experiment.parts(settings):
                bar.set_postfix_str(f"{experiment.name}, {part}")
                kept = _stored(experiment, part, settings, output)
                if kept is None:
                    kept = _run(experiment, part, settings, found)
                    _store(experiment, part, settings, output, kept)
                    bar.update(_seconds(experiment, settings))
                found[part] = kept
            _finish(experiment, found, settings, output)
    if not here:
        raise SystemExit("There is nothing to run.")
    say((output / "summary.md").read_text())


def _run(experiment: Experiment, part: str, settings: Settings, found: Found) -> dict[str, Any]:
    """A part in a fork: what `limited` is called in has fitted nothing before."""
    outcome = limited(lambda: [experiment.run(part, settings, found)])
    if outcome.note:
        raise RuntimeError(f"{experiment.name}, {part}: {outcome.note}")
    return outcome.values[0]


def _can_run(experiment: Experiment, settings: Settings, say: Callable[[str], None]) -> bool:
    reason = experiment.missing(settings)
    if reason:
        say(f"{experiment.name} is left out: {reason}")
    return not reason


def _seconds(experiment: Experiment, settings: Settings) -> float:
    """Of a part."""
    whole = replace(settings, splits=None)
    return experiment.seconds[0 if settings.quick else 1] / len(experiment.parts(whole))


# --- what is kept --------------------------------------------------------------------------------


def _of(settings: Settings) -> dict[str, Any]:
    """The settings that a part depends on."""
    return {"quick": settings.quick, "limit": settings.limit}


def _file(experiment: Experiment, part: str, output: Path) -> Path:
    return output / "parts" / experiment.name / f"{part.replace(' ', '-')}.json"


def _stored(experiment: Experiment, part: str, settings: Settings, output: Path) -> Any:
    path = _file(experiment, part, output)
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return kept["found"] if kept["settings"] == _of(settings) else None


def _store(experiment: Experiment, part: str, settings: Settings, output: Path, found: Any) -> None:
    path = _file(experiment, part, output)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: a file that is there is whole.
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"settings": _of(settings), "found": found}) + "\n")
    new.replace(path)


# --- what is shown -------------------------------------------------------------------------------


def _finish(experiment: Experiment, found: Found, settings: Settings, output: Path) -> None:
    _show(experiment, found, output, {"settings": _of(settings), "machine": machine()})
    _summarise(output)


def draw_all(experiments: Sequence[Experiment], output: Path) -> None:
    """Draw and sum up what is written in ``output`` already, as these experiments do now."""
    written = [e for e in experiments if (output / f"{e.name}.json").exists()]
    if not written:
        raise SystemExit(
            f"{output} has no numbers of these experiments: run them first, or name their folder "
            "with --output."
        )
    for experiment in written:
        kept = json.loads((output / f"{experiment.name}.json").read_text())
        run = {key: kept[key] for key in ("settings", "machine")}
        _show(experiment, kept["parts"], output, run)
    _summarise(output)


def _show(experiment: Experiment, found: Found, output: Path, run: dict[str, Any]) -> None:
    """The numbers with the claims, and the picture."""
    from matplotlib.figure import Figure

    written = {
        "experiment": experiment.name,
        "source": experiment.source,
        **run,
        "claims": [vars(claim) for claim in experiment.claims(found)],
        "parts": found,
    }
    (output / f"{experiment.name}.json").write_text(json.dumps(written, indent=1) + "\n")
    figure = Figure(layout="constrained")
    experiment.draw(found, figure)
    if experiment.title:
        figure.suptitle(experiment.title)
    figure.savefig(output / f"{experiment.name}.png", dpi=150)


def _summarise(output: Path) -> None:
    """The table of all experiments whose numbers are in the folder."""
    rows, holds, quicks = [], [], []
    for path in sorted(output.glob("*.json")):
        kept = json.loads(path.read_text())
        if "claims" not in kept:  # figures of another bench
            continue
        quicks.append(kept["settings"]["quick"])
        claims = [Claim(**c) for c in kept["claims"]]
        rows += [_row(kept["source"], kept["experiment"], claim) for claim in claims]
        holds += [claim.holds for claim in claims if claim.holds is not None]
    quick = " (some in a quick run: fewer splits, smaller sets)" if any(quicks) else ""
    about = ABOUT.format(hold=sum(holds), decided=len(holds), quick=quick)
    (output / "summary.md").write_text(about + HEAD + "".join(rows))


def _row(source: str, name: str, claim: Claim) -> str:
    holds = {True: "yes", False: "**no**", None: ""}[claim.holds]
    cells = [
        f"{source}: [{name}]({name}.png)",
        claim.says,
        claim.paper,
        claim.here,
        holds,
        claim.why,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
