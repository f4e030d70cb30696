"""The fitted state of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..arrays.backend import Backend
from ..solvers.centers import Centers
from ..solvers.selection import Selection
from ..statistics.base import Statistics


@dataclass
class Fitted:
    """The fitted state of a model. The solution is formed once, when it is first asked for.

    Kept apart from the estimator, so that asking a model for predictions never changes it. The
    parameters that the solution depends on are those at the fit, whatever is set later.
    """

    backend: Backend
    centers: Centers | None
    params: dict[str, Any]
    statistics: Statistics | None = None
    selection: Selection | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    def share(self) -> Statistics | None:
        """The statistics, for another model too: from now on neither adds to them in place."""
        self.shared = True
        return self.settled().statistics

    def own_statistics(self) -> Statistics:
        """Statistics that may be added to in place."""
        assert self.statistics is not None
        return self.statistics.copy() if self.shared else self.statistics

    def settled(self) -> Fitted:
        """The same state, after what an interrupted call changed in the statistics was undone."""
        if self.statistics is not None:
            self.statistics.undo()
        return self
