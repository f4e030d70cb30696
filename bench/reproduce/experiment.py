"""What an experiment is: parts that are run one by one and stored, a picture, and claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..peers import naive_feature_selection

Found = dict[str, dict[str, Any]]  # what each part found, as it is stored


@dataclass(frozen=True)
class Settings:
    """What all experiments are told."""

    data: Path
    quick: bool = False
    limit: float = 120.0  # seconds that a method may take on one part
    splits: int | None = None  # where not each experiment's own number

    def numbered(self, full: int) -> list[str]:
        """Parts that are random splits."""
        return [f"split {n:02}" for n in range(self.splits or (3 if self.quick else full))]


@dataclass(frozen=True)
class Claim:
    """A row of the summary: what the paper says, what was found, and whether it holds."""

    says: str
    paper: str
    here: str
    holds: bool | None = None  # None: nothing to decide
    why: str = ""


class Experiment(ABC):
    """One figure or table.

    Attributes
    ----------
    name : str
        For ``--only``, and of its files.
    title : str
        Of its picture, where `draw` gives it none.
    source : str
        Where the paper has it: [C] *Sparse l1 and l2 Center Classifiers*, [N] *Naive Feature
        Selection*, [W] the lecture notes *Linear Classification*.
    seconds : tuple of float
        What the quick and the full run take on two quiet cores.
    files : tuple of str
        Data files that it reads.
    """

    name: str
    title: str = ""
    source: str
    seconds: tuple[float, float]
    files: tuple[str, ...] = ()

    def missing(self, settings: Settings) -> str | None:
        """Why it cannot be run, if it cannot."""
        absent = [file for file in self.files if not (settings.data / file).exists()]
        return f"{settings.data} has no {absent[0]}" if absent else None

    @abstractmethod
    def parts(self, settings: Settings) -> Sequence[str]:
        """Names of the parts, in order: a part is what is not done again after an interrupt."""

    @abstractmethod
    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """The numbers of a part, as JSON takes them; ``found`` has those of the parts before."""

    @abstractmethod
    def draw(self, found: Found, figure: Any) -> None:
        """Draw all parts in the paper's form."""

    @abstractmethod
    def claims(self, found: Found) -> list[Claim]:
        """What of the paper holds."""


def percent(axis: Any, of: str, measure: str) -> None:
    """A log axis of shares of the features, in plain numbers."""
    axis.set(xscale="log", xlabel=f"{of} (%)", ylabel=measure)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(alpha=0.3)


class BesideAuthors(Experiment):
    """An experiment that needs the authors' code."""

    def missing(self, settings: Settings) -> str | None:
        """Files, or the authors' package."""
        there = naive_feature_selection() is not None
        return super().missing(settings) if there else "the extra bench is not installed"
