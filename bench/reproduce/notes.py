"""[W] The studies of the lecture notes, on their data or in kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from scipy.fft import dct
from scipy.signal import lfilter
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from gpucenters import (
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseGaussianNB,
    sparsity_path,
)

from ..shapes import zipf_text
from .data import TEXTS, read_genes, read_texts, split, word_counts
from .experiment import Claim, Experiment, Found, Settings
from .two_stage import linear_svm


class Iris(Experiment):
    """Linear and quadratic discriminants, and the pairs of columns."""

    name, source, seconds = "iris", "[W] iris", (2, 2)

    def parts(self, settings: Settings) -> list[str]:
        """One."""
        return ["training errors"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Training errors of both rules."""
        X, y = load_iris(return_X_y=True)
        rules = {"LDA": MahalanobisCenterClassifier(), "QDA": QuadraticDiscriminantAnalysis()}
        return {name: 1 - float(rule.fit(X, y).score(X, y)) for name, rule in rules.items()}

    def draw(self, found: Found, figure: Any) -> None:
        """Each pair of columns."""
        data = load_iris()
        figure.set_size_inches(12, 7)
        axes = figure.subplots(2, 3).ravel()
        for axis, (a, b) in zip(axes, combinations(range(4), 2), strict=True):
            for code, kind in enumerate(data.target_names):
                axis.scatter(*data.data[data.target == code][:, [a, b]].T, s=9, label=kind)
            axis.set(xlabel=data.feature_names[a], ylabel=data.feature_names[b])
        axes[0].legend()

    def claims(self, found: Found) -> list[Claim]:
        """0.02 each."""
        errors = found["training errors"]
        here = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
        holds = all(round(error, 2) == 0.02 for error in errors.values())
        why = "LDA: MahalanobisCenterClassifier; QDA: scikit-learn's"
        return [Claim("training errors of LDA and QDA", "0.02 each", here, holds, why)]


class HeartDisease(Experiment):
    """The Wald table of all nine risk factors, by statsmodels."""

    name, source, seconds = "heart-disease", "[W] CORIS", (3, 3)
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


class RegularisationPaths(Experiment):
    """MPQA: coefficients of l1-logistic regression and accuracy, beside the path of l2-SC."""

    name, source, seconds = "regularisation-paths", "[W] paths", (10, 60)
    files = TEXTS["mpqa"]

    def parts(self, settings: Settings) -> list[str]:
        """One."""
        return ["split 00"]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Coefficients of the words that enter first, and both accuracies."""
        texts, y = read_texts(settings.data, "mpqa", 3000 if settings.quick else None)
        data = split(word_counts(texts), y, 0)
        Cs = 2.0 ** np.arange(-12, 3)
        models = [
            LogisticRegression(C=C, l1_ratio=1, solver="liblinear").fit(data.train, data.y_train)
            for C in Cs
        ]
        w = np.asarray([model.coef_.ravel() for model in models])
        first = np.argsort(-np.count_nonzero(w, axis=0), kind="stable")[:30]
        path = sparsity_path(
            L2CenterClassifier(), data.train, data.y_train, X_test=data.test, y_test=data.y_test
        )
        return {
            "C": Cs.tolist(),
            "coefficients": w[:, first].tolist(),
            "nonzero": np.count_nonzero(w, axis=1).tolist(),
            "l1-logistic": [float(model.score(data.test, data.y_test)) for model in models],
            "k": np.asarray(path.ks).tolist(),
            "l2-SC": path.mean.tolist(),
        }

    def draw(self, found: Found, figure: Any) -> None:
        """Coefficients against the penalty, accuracies against the number of words."""
        row = found["split 00"]
        figure.set_size_inches(12, 4.5)
        left, right = figure.subplots(1, 2)
        left.semilogx(row["C"], row["coefficients"], linewidth=0.8)
        left.set(xlabel="C = 1 / penalty", ylabel="coefficients of the words that enter first")
        right.semilogx(row["nonzero"], row["l1-logistic"], "o-", label="l1-logistic")
        right.semilogx(row["k"], row["l2-SC"], label="l2-SC, one fit")
        right.set(xlabel="words", ylabel="accuracy")
        right.legend()

    def claims(self, found: Found) -> list[Claim]:
        """Both bests."""
        row = found["split 00"]
        best = {name: max(row[name]) for name in ("l1-logistic", "l2-SC")}
        here = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
        return [Claim("MPQA: best accuracy on the path", "", here, None, "chosen on the test part")]


class DiagonalDiscriminants(Experiment):
    """DLDA and DQDA against a linear SVM and sparse logistic regression on gene expressions."""

    name, source, seconds = "diagonal-discriminants", "[W] high dimensions", (20, 200)
    SETS = ("alon", "golub", "gordon", "shipp", "singh")
    files = tuple(f"{name}.npz" for name in SETS)

    def parts(self, settings: Settings) -> list[str]:
        """Data sets."""
        return [*self.SETS]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies of each model over the splits."""
        X, y = read_genes(settings.data, part)
        k = 100
        models: dict[str, Callable[[], Any]] = {
            "DLDA": lambda: L2CenterClassifier(scale="pooled", priors="empirical"),
            f"DLDA, k = {k}": lambda: L2CenterClassifier(k=k, scale="pooled", priors="empirical"),
            "DQDA": lambda: SparseGaussianNB(ddof=1),
            f"DQDA, k = {k}": lambda: SparseGaussianNB(k=k, ddof=1),
            "SVM": linear_svm,
            "l1-logistic": lambda: LogisticRegression(l1_ratio=1, solver="liblinear"),
        }
        rows: dict[str, list[float]] = {name: [] for name in models}
        for number in range(2 if settings.quick else 20):
            data = split(X, y, number)
            for name, make in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = make().fit(data.train, data.y_train).predict(data.test)
                rows[name].append(float(accuracy_score(data.y_test, predicted)))
        return rows

    def draw(self, found: Found, figure: Any) -> None:
        """Bars."""
        figure.set_size_inches(10, 4.5)
        axis, models = figure.subplots(), list(next(iter(found.values())))
        for number, model in enumerate(models):
            values = [np.mean(row[model]) for row in found.values()]
            errors = [np.std(row[model]) for row in found.values()]
            at = np.arange(len(found)) + 0.13 * (number - 2.5)
            axis.bar(at, values, 0.13, yerr=errors, label=model, capsize=2)
        axis.set_xticks(range(len(found)), list(found))
        axis.set(ylabel="accuracy", ylim=(0.4, 1.05))
        figure.legend(loc="outside right upper")

    def claims(self, found: Found) -> list[Claim]:
        """Means over the data sets."""
        models = next(iter(found.values()))
        mean = {m: float(np.mean([np.mean(row[m]) for row in found.values()])) for m in models}
        best = max(mean, key=mean.__getitem__)
        chosen = max(mean[m] for m in mean if "k =" in m)
        return [
            Claim(
                "few features repair the diagonal rules in high dimensions",
                "",
                ", ".join(f"{name} {value:.3f}" for name, value in mean.items()),
                bool(chosen > max(mean["DLDA"], mean["DQDA"])),
                f"mean accuracy over {len(found)} data sets; best {best}"
                + ("" if "D" in best else f", ours loses by {mean[best] - chosen:.3f}"),
            )
        ]


class Curves(Experiment):
    """In kind, for the supernovae: correlated curves, as they are and after a cosine transform."""

    name, source, seconds = "curves", "[W] supernovae, in kind", (5, 20)

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
        _draw(found, figure)

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
                "simulated: the supernova data are not at hand. Coefficients of stationary curves "
                "are nearly uncorrelated, as diagonal models assume",
            )
        ]


class Links(Experiment):
    """In kind, for the blogs: counts of words, and columns of links that tell more."""

    name, source, seconds = "links", "[W] blogs, in kind", (5, 20)

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
        _draw(found, figure)

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


def _draw(found: Found, figure: Any) -> None:
    axis = figure.subplots()
    for name, row in found.items():
        axis.semilogx(row["k"], row["accuracy"], label=name)
    axis.set(xlabel="k", ylabel="accuracy of l2-SC")
    axis.legend()
