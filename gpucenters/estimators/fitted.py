"""The fitted state of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from ..arrays.backend import Backend, restore_or_host
from ..arrays.functions import to_host
from ..solvers.centers import Centers
from ..solvers.selection import Selection
from ..statistics.base import Statistics


class learned(property):  # noqa: N801 (a decorator, like its base)
    """A property that is learned from data: where it cannot be had, an AttributeError says why.

    So ``hasattr`` answers, and tools that show all attributes pass over it.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The value."""
        try:
            return super().__get__(instance, owner)
        except AttributeError:  # NotFittedError among them
            raise
        except ValueError as error:
            raise AttributeError(str(error)) from error


@dataclass
class Fitted:
    """The fitted state of a model. The solution is formed once, when it is first asked for.

    Kept apart from the estimator, so that asking a model for predictions never changes it. The
    parameters that the solution depends on are those at the fit, whatever is set later.

    ``met`` are the codes of the classes that a stream has met, of which alone there are centers;
    None where it has met all.
    """

    backend: Backend
    centers: Centers | None
    params: dict[str, Any]
    statistics: Statistics | None = None
    selection: Selection | None = None
    met: tuple[int, ...] | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    def shared_with(self, **changes: Any) -> Self:
        """The state of a copy that shares the statistics, with some changes."""
        return replace(self, **{"statistics": self.share(), "cache": {}, "shared": True} | changes)

    def share(self) -> Statistics | None:
        """The statistics, for another model too: from now on neither adds to them in place."""
        self.shared = True
        return self.settled().statistics

    def __getstate__(self) -> dict[str, Any]:
        """On the host, without a module, and without what is formed when it is asked for."""
        state = {f.name: getattr(self.settled(), f.name) for f in fields(self)}
        selection = self.selection and self.selection.moved(to_host)
        return state | {"cache": {}, "selection": selection, "backend": self.backend.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the device that the pickle names, or on the host where CUDA cannot be used."""
        backend, selection = restore_or_host(state["backend"]), state["selection"]
        selection = selection and selection.moved(backend.move)
        self.__dict__.update(state, backend=backend, selection=selection)

    def settled(self) -> Self:
        """The same state, with the last batch in the arrays of the statistics."""
        if self.statistics is not None:
            self.statistics.settle()
        return self
