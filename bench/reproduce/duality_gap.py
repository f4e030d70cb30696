"""[N] Experiment 1: the duality gap of sparse naive Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import duality
from .experiment import Claim, Experiment, Found, Settings


class DualityGap(Experiment):
    """Bounds against k for class sums uniform at random."""

    name, source, seconds = "duality-gap", "[N] Fig. 1", (5, 5)
    title = "Sparse naive Bayes on class sums uniform at random: bounds, and the gap"

    def parts(self, settings: Settings) -> list[str]:
        """Numbers of features."""
        return ["m 30", "m 3000"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """The curves of `bench.duality`."""
        return duality.bounds(int(part.split()[1]))

    def draw(self, found: Found, figure: Any) -> None:
        """Both sizes."""
        duality.draw(found, figure)

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
