"""[W] The study of blogs, in kind: its data are not at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from gpucenters import L2CenterClassifier, sparsity_path

from ..shapes import zipf_text
from .curves import draw_paths
from .experiment import Claim, Experiment, Found, Settings


class Links(Experiment):
    """In kind, for the blogs: counts of words, and columns of links that tell more."""

    name, source, seconds = "links", "[W] blogs, in kind", (5, 20)
    title = "Counts of words, without and with columns of links"

    def parts(self, settings: Settings) -> list[str]:
        """Without and with the links."""
        return ["words", "words and links"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies for all k, and the share of links among the best 50."""
        n, m, links = 1500, 20_000, 50
        rng, y = np.random.default_rng(0), np.arange(1500) % 2
        X = zipf_text(n, m, 200, 1.0).astype(np.float64)
        # 200 words count half in one of the classes.
        half = np.zeros(m, dtype=bool)
        half[rng.choice(m, 200, replace=False)] = True
        rows = np.repeat(np.arange(n), np.diff(X.indptr))
        X.data[half[X.indices] & (y[rows] == 1)] *= 0.5
        if part != "words":
            rate = np.where((np.arange(links) % 2)[None, :] == y[:, None], 0.12, 0.03)
            X = scipy.sparse.hstack([X, scipy.sparse.csr_matrix(rng.random(rate.shape) < rate)])
            X = X.tocsr().astype(np.float64)
        model = L2CenterClassifier(scale="std")
        path = sparsity_path(model, X, y, n_splits=5, random_state=0)
        best = model.fit(X, y).ranking_[:links]
        return {
            "k": np.asarray(path.ks).tolist(),
            "accuracy": path.mean.tolist(),
            "links": float(np.mean(best >= m)),
        }

    def draw(self, found: Found, figure: Any) -> None:
        """Both."""
        draw_paths(found, figure)

    def claims(self, found: Found) -> list[Claim]:
        """That the links are found and help."""
        words, both = (found[part] for part in ("words", "words and links"))
        return [
            Claim(
                "links tell more than words, and are selected first",
                "links help",
                f"best accuracy {max(both['accuracy']):.3f} with links, "
                f"{max(words['accuracy']):.3f} without; {both['links']:.0%} of the best 50 "
                "features are links",
                max(both["accuracy"]) > max(words["accuracy"]) and both["links"] > 0.5,
                "simulated: the blog data are not at hand",
            )
        ]
