"""[N] Experiment 4: run time against the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpucenters import L2CenterClassifier, SparseMultinomialNB

from ..shapes import labels, zipf_text
from .experiment import Claim, Experiment, Found, Settings
from .limits import timed


class TimeAgainstM(Experiment):
    """Seconds to fit against the number of features, at k/m = 5%."""

    name, source, seconds = "time-against-m", "[N] Experiment 4", (10, 60)
    title = "Seconds to fit k = m / 20 of m words of 20,000 texts"

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
        axis.set(xlabel="features m", ylabel="seconds")
        axis.grid(alpha=0.3)
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """Slopes of the logarithms, over all m and over the last step, which is the steepest."""
        slopes = {}
        for name in ("SMNB", "l2-SC"):
            points = np.log([(row["m"], row[name]) for row in found.values()])
            slopes[name] = [float(np.polyfit(*p.T, 1)[0]) for p in (points, points[-2:])]
        steps = [row["m"] for row in found.values()][-2:]
        return [
            Claim(
                "time grows at most linearly in m at k/m = 5%",
                "sub-linear",
                ", ".join(
                    f"{name}: m^{s:.2f}, at last m^{last:.2f}" for name, (s, last) in slopes.items()
                ),
                max(max(each) for each in slopes.values()) <= 1.05,
                f"at last: from {steps[0]:,} to {steps[1]:,} words, where those that occur once or "
                "twice, alike by the hundred thousand, are at the edge of SMNB's support: all are "
                "candidates, and the dual is solved twice",
            )
        ]
