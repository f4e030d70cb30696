"""What a sparsity path says: choices of k, tables, text, JSON and pictures."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparsePoissonNB,
    SparsityPath,
    SparsityPathDisplay,
    plot_centers,
    sparsity_path,
)

# Means 0.6, 0.8, 0.9, 0.9, 0.7; at the best k the standard error is 0.1 / sqrt(2) * sqrt(2) = 0.1.
SCORES = [[0.5, 0.7], [0.8, 0.8], [0.8, 1.0], [0.9, 0.9], [0.7, 0.7]]
KS = [1, 10, 100, 1000, 10000]


def _path(**options: Any) -> SparsityPath:
    return SparsityPath(KS, {"accuracy": SCORES}, estimator="Model", **options)


def test_means_deviations_and_choices() -> None:
    path = _path()
    np.testing.assert_allclose(path.mean, [0.6, 0.8, 0.9, 0.9, 0.7])
    np.testing.assert_allclose(path.std, [0.1, 0, 0.1, 0, 0], atol=1e-15)
    assert path.best_k == 100  # the smaller one of two that tie
    assert path.best_k_1se == 10  # 0.8 >= 0.9 - 0.1
    assert (path.choose(), path.choose("one-standard-error")) == (100, 10)
    assert path.n_folds == 2 and path.scorings == ["accuracy"] and path.n_features == 10000
    one = SparsityPath([1, 2], {"accuracy": [[0.5], [0.6]]})
    assert (one.best_k, one.best_k_1se) == (2, 2)


def test_means_that_differ_by_rounding_are_a_tie() -> None:
    # The same three scores in another order: the means differ in the last bit.
    first, second = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]
    assert np.mean(first) > np.mean(second)
    for scale in (1.0, -1e6, 1e-200):
        rows = [[x * scale for x in row] for row in (first, second)]
        for scores in (rows, rows[::-1]):
            path = SparsityPath([1, 2], {"accuracy": scores})
            assert (path.best_k, path.best_k_1se) == (1, 1)
    best = [0.69, 0.58]  # less its standard error it is 0.58, and above it by rounding
    assert np.mean(best) - np.std(best, ddof=1) / np.sqrt(2) > 0.58
    path = SparsityPath([1, 2], {"accuracy": [[0.58, 0.58], best]})
    assert (path.best_k, path.best_k_1se) == (2, 1)
    # Of two best means the standard error is that of the smaller k.
    path = SparsityPath([1, 2, 3], {"accuracy": [[0.6, 0.6], [0.7, 0.7], [0.5, 0.9]]})
    assert (path.best_k, path.best_k_1se) == (2, 2)
    infinite = SparsityPath([1, 2, 3], {"accuracy": [[0.5], [np.inf], [np.nan]]})
    assert (infinite.best_k, infinite.best_k_1se) == (2, 2)


def test_several_scorings_are_dicts() -> None:
    other = -np.asarray(SCORES)
    path = SparsityPath(KS, {"accuracy": SCORES, "loss": other})
    assert path.best_k == {"accuracy": 100, "loss": 1}
    assert path.choose(scoring="loss") == 1 and path.choose() == 100
    np.testing.assert_allclose(path.mean["loss"], -path.mean["accuracy"])
    assert set(path.scores) == set(path.std) == set(path.best_k_1se) == {"accuracy", "loss"}
    frame = path.to_frame()
    assert frame["loss"]["mean"].tolist() == path.mean["loss"].tolist()
    assert "loss" in str(path) and "accuracy" in str(path)


def test_scores_without_a_best_one_are_refused() -> None:
    with pytest.raises(ValueError, match="all mean scores are NaN"):
        _ = SparsityPath([1], {"accuracy": [[np.nan]]}).best_k
    with pytest.raises(ValueError, match="shape"):
        SparsityPath([1, 2], {"accuracy": [[1.0]]})


def test_frame() -> None:
    frame = _path().to_frame()
    assert frame.index.tolist() == KS and frame.index.name == "k"
    assert frame.columns.tolist() == ["mean", "std", "fold 0", "fold 1"]
    assert frame.loc[100, "fold 1"] == 1.0


def test_text_shows_every_choice_and_stays_short() -> None:
    lines = str(_path()).splitlines()
    assert lines[0] == "SparsityPath of Model, 2 folds: accuracy"
    (best,) = (line for line in lines if "best" in line)
    (within,) = (line for line in lines if "1-SE" in line)
    assert best.split()[:3] == ["100", "0.900", "0.100"] and within.split()[0] == "10"
    many = np.linspace(0, 1, 500)[:, None] * [1.0, 1.0]
    many[123] = 2.0
    long = str(SparsityPath(np.arange(1, 501), {"accuracy": many})).splitlines()
    assert len(long) < 30 and any("best" in line and line.split()[0] == "124" for line in long)
    equal = str(SparsityPath([1, 2], {"accuracy": [[0.5], [0.5]]}))
    assert "nan" not in equal


def test_html_shows_the_numbers_and_escapes_names() -> None:
    page = SparsityPath(KS, {"<b>": SCORES}, estimator="Model")._repr_html_()
    assert "0.900" in page and "best" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert page.count("<tr") == 6


def test_json_and_back(on_host: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    path = sparsity_path(L2CenterClassifier(), X, y, ks=[1, 5], cv=3, scoring=["accuracy", "f1"])
    for supports in (False, True):
        text = path.to_json(supports=supports)
        back = SparsityPath.from_json(text)
        assert str(back) == str(path) and repr(back) == repr(path)
        for name in path.scorings:
            np.testing.assert_array_equal(back.scores[name], path.scores[name])
        if supports:
            expected = path.selection_frequency.toarray()
            np.testing.assert_array_equal(back.selection_frequency.toarray(), expected)
        else:
            with pytest.raises(AttributeError, match="without supports"):
                _ = back.selection_frequency
    assert json.loads(_path().to_json())["ks"] == KS
    single = SparsityPath.from_json(_path().to_json())
    assert single.best_k == 100
    with pytest.raises(ValueError, match="no JSON of a SparsityPath"):
        SparsityPath.from_json("{}")


# --- pictures ----------------------------------------------------------------------------------


@pytest.fixture
def pyplot() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_picture_of_paths(pyplot: Any) -> None:
    ax = _path().plot()
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "accuracy"
    line, best, within = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), KS)
    np.testing.assert_allclose(line.get_ydata(), [0.6, 0.8, 0.9, 0.9, 0.7])
    assert (best.get_xdata()[0], within.get_xdata()[0]) == (100, 10)
    low, high = ax.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (pytest.approx(0.5), pytest.approx(1.0))
    again = SparsityPath(KS, {"accuracy": SCORES}).plot(ax, name="second", linestyle="--")
    assert again is ax and len(ax.lines) == 6
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    others = ["± 1 standard deviation", "best k", "one-standard-error rule"]
    assert labels == ["Model", "second", *others]


def _inside(figure: Any) -> bool:
    """Whether all that is shown is inside the figure."""
    figure.canvas.draw()
    shown = figure.get_tightbbox()
    return bool(shown.min.min() >= 0 and np.all(shown.max <= figure.get_size_inches()))


def _plain_legend(ax: Any) -> list[str]:
    """The names of a legend, none of which is read as mathematics."""
    texts = ax.get_legend().get_texts()
    assert not any(text.get_parse_math() for text in texts)
    return [text.get_text() for text in texts]


def _groups(classes: Any, m: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """The first features tell the classes apart, each of them one."""
    rng, codes = np.random.default_rng(0), np.arange(10 * len(classes)) % len(classes)
    X = rng.normal(size=(len(codes), m)) + 4 * (codes[:, None] == np.arange(m))
    return X, np.asarray(classes)[codes]


def test_picture_of_a_path_has_plain_ticks_between_powers_of_ten(pyplot: Any) -> None:
    ax = SparsityPath([1, 30], {"accuracy": [[0.5, 0.6], [0.7, 0.8]]}).plot(name="_ $l_2$")
    assert _plain_legend(ax)[0] == "_ $l_2$" and _inside(ax.figure)
    low, high = ax.get_xlim()
    shown = [t.get_text() for t, x in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)
             if low <= x <= high]  # fmt: skip
    assert shown == ["1", "2", "5", "10", "20"]


def test_picture_of_a_single_k_has_its_deviation(pyplot: Any) -> None:
    ax = SparsityPath([7], {"accuracy": [[0.5, 0.7]]}).plot()
    (band,) = ax.collections
    np.testing.assert_allclose(band.get_segments()[0][:, 1], [0.5, 0.7])


def test_picture_of_several_scores_has_a_panel_for_each(pyplot: Any) -> None:
    scores = {"accuracy": SCORES, "neg_log_loss": -np.asarray(SCORES)}
    path = SparsityPath(KS, scores, estimator="Model")
    panels = path.plot()
    assert [ax.get_ylabel() for ax in panels] == ["accuracy", "neg log loss"]
    assert panels[1].lines[0].get_ydata()[0] == pytest.approx(-0.6) and _inside(panels[0].figure)
    again = path.plot(panels, name="second")
    assert again is panels and len(panels[1].lines) == 6
    assert path.plot(pyplot.subplots()[1]).get_ylabel() == "accuracy"
    assert path.plot(scoring="neg_log_loss").get_ylabel() == "neg log loss"


NAMES = {
    "long": ["T cells, CD4 positive, alpha-beta memory, activated", "B cells\nof bone marrow"],
    "underscores": ["_negative", "_positive"],
    "dollars": ["$5 or $6", "a_b^c $x$"],
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_in_pictures_are_whole_and_literal(kind: str, pyplot: Any) -> None:
    X, y = _groups(NAMES[kind])
    names = [f"{NAMES[kind][0]} {i}" for i in range(30)]
    model = L2CenterClassifier(k=25).fit(X, y)
    ax = plot_centers(model, 25, feature_names=names)
    shown = {"long": ["B cells of bone marrow", "T cells, CD4 positiv…ta memory, activated"]}
    assert _plain_legend(ax) == shown.get(kind, NAMES[kind]) and _inside(ax.figure)
    path = sparsity_path(model, X, y, ks=[1, 30], n_splits=2, random_state=0)
    frequency = path.plot_selection_frequency(25, feature_names=names)
    for each in (ax, frequency):
        ticks = each.get_yticklabels()
        assert len({text.get_text() for text in ticks}) == 25 and _inside(each.figure)
        assert not any(text.get_parse_math() for text in ticks)
    if kind != "long":
        assert ax.get_yticklabels()[0].get_text() == names[model.ranking_[0]]


@pytest.mark.parametrize("n", [10, 25, 60])
def test_every_class_in_a_picture_has_its_own_look_and_name(n: int, pyplot: Any) -> None:
    X, y = _groups([f"type {c:02}" for c in range(n)])
    ax = plot_centers(L2CenterClassifier(k=8).fit(X, y))
    colors = {tuple(points.get_facecolor()[0]) for points in ax.collections[1:]}
    assert len(colors) == n and _plain_legend(ax) == sorted(set(y)) and _inside(ax.figure)


def test_picture_of_scaled_centers_shows_differences_in_their_scale(pyplot: Any) -> None:
    X, y = _groups(["a", "b"])
    X = (X + 100) * np.logspace(-4, 4, 30)
    model = L2CenterClassifier(k=5, scale="std").fit(X, y)
    ax = plot_centers(model)
    drawn = np.stack([points.get_offsets()[:, 0] for points in ax.collections[1:]])
    np.testing.assert_allclose(drawn.sum(axis=0), 0, atol=1e-12)
    in_units = (drawn[1] - drawn[0]) * model.scale_[model.ranking_]
    found = np.diff(model.centers_, axis=0)[0][np.searchsorted(model.support_, model.ranking_)]
    np.testing.assert_allclose(in_units, found)
    assert ax.get_xscale() == "linear" and np.abs(np.diff(drawn, axis=0)).max() < 3
    plain = plot_centers(model, scaled=False).collections[1].get_offsets()[:, 0]
    np.testing.assert_allclose(plain, model.centers_[0, np.argsort(model.ranking_).argsort()])
    rates = SparsePoissonNB(k=5, scale="dispersion").fit(np.abs(X), y)
    assert plot_centers(rates).get_xlabel() == "class center"
    with pytest.raises(ValueError, match="scaled=True needs a model with scale_"):
        plot_centers(L2CenterClassifier(k=5).fit(X, y), scaled=True)


@pytest.mark.parametrize(("offset", "expected"), [(5, "log"), (0, "symlog")])
def test_centers_of_different_sizes_have_a_logarithmic_axis(
    offset: float, expected: str, pyplot: Any
) -> None:
    X, y = _groups(["a", "b"], 3)
    ax = plot_centers(L2CenterClassifier().fit((X + offset) * [1, 1e-2, 1e-4], y))
    assert ax.get_xscale() == expected and _inside(ax.figure)


def test_letters_that_the_font_lacks_come_from_another_or_a_warning_says_so(pyplot: Any) -> None:
    X, y = _groups(["β", "δ"])
    with pyplot.rc_context({"font.family": ["cmtt10"]}):
        ax = plot_centers(L2CenterClassifier(k=3).fit(X, y))
    for text in (*ax.get_legend().get_texts(), *ax.get_yticklabels()):
        assert text.get_fontfamily()[0] == "cmtt10" and len(text.get_fontfamily()) > 1
        text.get_window_extent(ax.figure.canvas.get_renderer())  # warns of letters it does not find
    with pytest.warns(UserWarning, match="no installed font has the letters \U000e01f0"):
        plot_centers(L2CenterClassifier(k=3).fit(X, y), feature_names=["\U000e01f0"] * 30)


def test_displays(pyplot: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    _, ax = pyplot.subplots()
    shown = SparsityPathDisplay.from_estimator(
        L2CenterClassifier(), X, y, ks=[1, 9], cv=2, scoring="roc_auc", ax=ax, name="l2"
    )
    assert shown.ax_ is ax and shown.figure_ is ax.figure and shown.line_.get_label() == "l2"
    assert ax.get_ylabel() == "roc auc"
    single = SparsityPath([1, 2], {"accuracy": [[0.5], [0.6]]})
    other = SparsityPathDisplay.from_path(single)
    assert other.band_ is None and other.ax_ is not ax


def test_picture_of_centers(pyplot: Any) -> None:
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = L1CenterClassifier(k=6, scale="std").fit(frame, y)
    ax = plot_centers(model, n=4)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [frame.columns[i] for i in model.ranking_[:4]]
    ax = plot_centers(model, n=4, scaled=False)
    offsets = [points.get_offsets() for points in ax.collections[1:]]
    for c, points in enumerate(offsets):
        medians = frame[y == model.classes_[c]].median()
        np.testing.assert_allclose(points[:, 0], medians.iloc[model.ranking_[:4]])
    top, bottom = ax.get_ylim()
    assert top > bottom  # the best one on top
    plain = L2CenterClassifier(k=3).fit(frame.to_numpy(), y)
    given = plot_centers(plain, feature_names=list(frame.columns))
    found = [text.get_text() for text in given.get_yticklabels()]
    assert found == [frame.columns[i] for i in plain.ranking_]
    full = MahalanobisCenterClassifier(k=2).fit(frame, y)
    assert len(plot_centers(full).get_yticks()) == 2


def test_picture_of_the_selection_frequency(pyplot: Any) -> None:
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = L2CenterClassifier(scale="std")
    path = sparsity_path(model, frame, y, ks=[1, 3, 30], n_splits=8, random_state=0)
    ax = path.plot_selection_frequency(5)
    frequency = path.selection_frequency.toarray()
    order = np.argsort(-frequency.sum(axis=0), kind="stable")[:5]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [frame.columns[i] for i in order] and ax.get_xscale() == "log"
    shown = np.asarray(ax.collections[0].get_array()).reshape(5, 3)
    np.testing.assert_array_equal(shown, frequency[:, order].T)
    top, bottom = ax.get_ylim()
    assert top > bottom  # the one that is selected most on top
    plain = sparsity_path(model, frame.to_numpy(), y, ks=[2], n_splits=2, random_state=0)
    ticks = plain.plot_selection_frequency().get_yticklabels()
    assert len(ticks) == 20 and ticks[0].get_text().isdigit()
    with pytest.raises(ValueError, match="30 features"):
        plain.plot_selection_frequency(feature_names=["one"])
    with pytest.raises(ValueError, match="at least 1"):
        plain.plot_selection_frequency(0)


def test_wrong_pictures_are_refused(pyplot: Any) -> None:
    model = L2CenterClassifier().fit([[0.0, 1], [1, 0]], [0, 1])
    with pytest.raises(ValueError, match="2 features"):
        plot_centers(model, feature_names=["one"])
    with pytest.raises(ValueError, match="at least 1"):
        plot_centers(model, n=0)
    with pytest.raises(TypeError, match="takes a model of gpucenters"):
        plot_centers(SparsityPath)
    with pytest.raises(TypeError, match="every number of features, and GMEBClassifier has none"):
        plot_centers(GMEBClassifier())


def _supports(feature: int) -> dict[str, Any]:
    return {"data": [1, 1], "indices": [0, feature], "indptr": [0, 1, 2]}


TWO = {"ks": [1, 2], "scores": {"a": [[1], [1]]}, "n_features": 5}
NO_PATHS: dict[str, dict[str, Any]] = {
    "no ks": {"scores": {"a": [[1]]}},
    "no scores": {"ks": [1], "scores": {}},
    "scores that are a number": {"ks": [1], "scores": 3},
    "more than a path has": {"ks": [1], "scores": {"a": [[1]]}, "extra": 1},
    "no numbers of features": {"ks": [], "scores": {"a": []}},
    "descending numbers": {"ks": [3, 1], "scores": {"a": [[1], [1]]}},
    "a feature beyond the last": TWO | {"supports": _supports(50)},
    "a feature below the first": TWO | {"supports": _supports(-9)},
    "supports without features": TWO | {"supports": {"data": [1, 1]}},
}


@pytest.mark.parametrize("state", NO_PATHS.values(), ids=list(NO_PATHS))
def test_text_that_is_no_path_is_refused(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no JSON of a SparsityPath"):
        SparsityPath.from_json(json.dumps({"format": "gpucenters.SparsityPath/1"} | state))


def test_scores_that_are_not_finite_are_shown_chosen_from_and_written() -> None:
    scores = {"a": [[-np.inf, -1], [-np.inf, -2]], "b": [[np.nan, np.nan], [np.nan, np.nan]]}
    scores["c"] = [[-np.inf, -1.0], [-3.0, -2.0]]
    path = SparsityPath([1, 2], scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "SparsityPath" in str(path) and "nan" in path._repr_html_()
        assert path.choose("one-standard-error", "a") == path.choose("best", "a") == 1
        assert path.choose("one-standard-error", "c") == 2
    found = SparsityPath.from_json(path.to_json())
    for name in scores:
        np.testing.assert_array_equal(found.scores_of(name), path.scores_of(name))
    json.loads(path.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_unknown_scorings_and_rules_are_named() -> None:
    path = SparsityPath([1, 2], {"a": [[1.0], [2.0]]})
    with pytest.raises(ValueError, match="scoring='z' is not among those of this path"):
        path.choose(scoring="z")
    with pytest.raises(ValueError, match="rule='most' is not valid"):
        path.choose("most")
