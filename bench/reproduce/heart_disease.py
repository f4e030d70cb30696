"""[W] Wald's table of the heart disease study."""

from __future__ import annotations

from typing import Any

import numpy as np

from .experiment import Claim, Experiment, Found, Settings


class HeartDisease(Experiment):
    """The Wald table of all nine risk factors, by statsmodels."""

    name, source, seconds = "heart-disease", "[W] CORIS", (3, 3)
    title = "Heart disease: Wald's tests of all risk factors"
    files = ("saheart.npz",)

    def parts(self, settings: Settings) -> list[str]:
        """One."""
        return ["wald"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Coefficients, standard errors and z."""
        import statsmodels.api as sm

        with np.load(settings.data / "saheart.npz", allow_pickle=False) as file:
            X, y, names = file["X"], file["y"], file["feature_names"].tolist()
        fitted = sm.Logit(y, sm.add_constant(X)).fit(disp=0)
        rows = zip(fitted.params, fitted.bse, fitted.tvalues, strict=True)
        return {
            n: [float(v) for v in row] for n, row in zip(["intercept", *names], rows, strict=True)
        }

    def draw(self, found: Found, figure: Any) -> None:
        """The table."""
        figure.set_size_inches(6, 3)
        axis = figure.subplots()
        axis.axis("off")
        cells = [[n, *(f"{v:.3f}" for v in row)] for n, row in found["wald"].items()]
        axis.table(cells, colLabels=["", "coefficient", "standard error", "z"], loc="center")

    def claims(self, found: Found) -> list[Claim]:
        """The published values."""
        z = {name: row[2] for name, row in found["wald"].items()}
        stated = {"tobacco": 2.984, "ldl": 2.915, "famhist": 4.061, "typea": 3.214, "age": 3.728}
        return [
            Claim(
                "Wald's z of the five significant risk factors",
                ", ".join(f"{name} {value}" for name, value in stated.items()),
                ", ".join(f"{name} {z[name]:.3f}" for name in stated),
                all(abs(z[name] - value) < 6e-4 for name, value in stated.items()),
                "statsmodels; all features, which nothing has selected",
            )
        ]
