"""[W] The study of supernovae, in kind: its data are not at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct
from scipy.signal import lfilter

from gpucenters import L2CenterClassifier, sparsity_path
from gpucenters.paths.drawing import numbers_of_features

from .experiment import Claim, Experiment, Found, Settings


class Curves(Experiment):
    """In kind, for the supernovae: correlated curves, as they are and after a cosine transform."""

    name, source, seconds = "curves", "[W] supernovae, in kind", (5, 20)
    title = "Correlated curves, as they are and transformed"

    def parts(self, settings: Settings) -> list[str]:
        """One for each form."""
        return ["curves", "cosine transform"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies for all k: a slow class difference in noise of correlation 0.95."""
        rng, points = np.random.default_rng(0), 256
        y = np.arange(2000) % 2
        noise = lfilter([1], [1, -0.95], rng.standard_normal((2000, points + 200)))[:, 200:]
        time = np.linspace(0, 1, points)
        X = noise + np.outer(y, 1.5 * np.cos(12 * np.pi * time))
        X = X if part == "curves" else dct(X, norm="ortho")
        path = sparsity_path(L2CenterClassifier(scale="pooled"), X, y, n_splits=5, random_state=0)
        return {"k": np.asarray(path.ks).tolist(), "accuracy": path.mean.tolist()}

    def draw(self, found: Found, figure: Any) -> None:
        """Both forms."""
        draw_paths(found, figure)

    def claims(self, found: Found) -> list[Claim]:
        """That few coefficients are better than any number of points."""
        few = max(a for k, a in zip(*found["cosine transform"].values(), strict=True) if k <= 10)
        best = max(found["curves"]["accuracy"])
        return [
            Claim(
                "after a cosine transform at most 10 coefficients classify better than any number "
                "of points",
                "a transform helps",
                f"{few:.3f} against {best:.3f}",
                few > best,
                "simulated, with a difference that is nearly one cosine: the supernova data are "
                "not at hand. Accuracies are the best over k. Coefficients of stationary curves "
                "are nearly uncorrelated, as diagonal models assume",
            )
        ]


def draw_paths(found: Found, figure: Any) -> None:
    """Accuracy against k, for each part."""
    axis = figure.subplots()
    for name, row in found.items():
        axis.plot(row["k"], row["accuracy"], label=name)
    numbers_of_features(axis)
    axis.set_ylabel("accuracy of l2-SC")
    axis.grid(alpha=0.3)
    axis.legend()
