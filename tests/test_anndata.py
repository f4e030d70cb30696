"""Ranked features in scanpy's form."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client
from scipy.stats import false_discovery_control
from sklearn.feature_selection import f_classif

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseGaussianNB,
    SparsePoissonNB,
    block_gains,
    permutation_gains,
)
from gpucenters.anndata import rank_features

KEY = "rank_features"
GROUPS = ["b", "a", "c"]  # not in the order of the alphabet


def _cells(**kwargs: Any) -> Any:
    rng = np.random.default_rng(2)
    group = np.repeat(GROUPS, [40, 30, 30])
    counts = rng.poisson(1.0, (100, 12))
    for i, name in enumerate(GROUPS):
        counts[group == name, i] += 3  # up in this group
    counts[group == "b", 5] = 0  # down in this group
    obs = pd.DataFrame({"type": pd.Categorical(group, categories=[*GROUPS, "unused"])})
    obs["donor"] = pd.Categorical([f"d{i}" for i in np.arange(100) // 3 % 5])
    obs["case"] = pd.Categorical(np.where(np.arange(100) // 3 % 5 < 3, "case", "control"))
    obs.index = [f"cell {i}" for i in range(100)]
    var = pd.DataFrame(index=[f"g{i}" for i in range(12)])
    X = scipy.sparse.csr_matrix(np.log1p(counts))
    layers = {"counts": scipy.sparse.csr_matrix(counts)}
    return anndata.AnnData(X, obs=obs, var=var, layers=layers, uns={"log1p": {"base": None}})


def test_one_against_the_rest() -> None:
    cells = _cells()
    rank_features(cells, "type", n_genes=4)
    found = cells.uns[KEY]
    assert found["names"].dtype.names == tuple(GROUPS)
    X, dense = cells.X, cells.X.toarray()
    for i, name in enumerate(GROUPS):
        of = (cells.obs["type"] == name).to_numpy()
        model = SparseGaussianNB(pooling=1.0).fit(X, of)
        listed = [int(gene[1:]) for gene in found["names"][name]]
        assert listed[0] == i and len(listed) == 4
        sign = np.sign(model.centers_[1] - model.centers_[0])
        signed = model.scores_ * sign
        assert listed == np.argsort(-signed, kind="stable")[:4].tolist()
        np.testing.assert_allclose(found["scores"][name], signed[listed], rtol=1e-6)
        pvalues = model.pvalues_
        np.testing.assert_allclose(found["pvals"][name], pvalues[listed], rtol=1e-6)
        assert np.all(found["pvals_adj"][name] >= found["pvals"][name])
        means = [np.expm1(dense[rows].mean(axis=0)) + 1e-9 for rows in (of, ~of)]
        change = np.log2(means[0] / means[1])
        np.testing.assert_allclose(found["logfoldchanges"][name], change[listed], rtol=1e-4)
        # The gain of one variance for both groups is a function of the F statistic.
        by_f = np.argsort(-f_classif(dense, of)[0])
        assert np.argsort(-model.scores_).tolist() == by_f.tolist()
    rank_features(cells, "type", n_genes=4, rankby_abs=True)
    assert "g5" in cells.uns[KEY]["names"]["b"][:2]
    assert cells.uns[KEY]["scores"]["b"].min() < 0


def test_the_joint_model_goes_to_var_and_varm() -> None:
    cells = _cells()
    model = L2CenterClassifier(k=2, scale="std")
    rank_features(cells, "type", estimator=model, key_added="l2")
    joint = L2CenterClassifier(scale="std").fit(cells.X, cells.obs["type"].astype(str))
    np.testing.assert_allclose(cells.var["l2_gain"], joint.scores_, rtol=1e-12)
    assert cells.var["l2_rank"].iloc[joint.ranking_].tolist() == list(range(1, 13))
    assert cells.uns["l2"]["classes"].tolist() == GROUPS
    centers = cells.varm["l2_centers"][:, [1, 0, 2]]
    np.testing.assert_allclose(centers, joint.centers_.T, rtol=1e-12)
    assert np.isnan(cells.uns["l2"]["pvals"]["a"]).all()  # l2 centers have none
    assert model.k == 2


def test_groups_and_reference() -> None:
    cells = _cells()
    rank_features(cells, "type", groups=["a"])
    of_all = _cells()
    rank_features(of_all, "type")
    found = cells.uns[KEY]
    assert found["names"].dtype.names == ("a",)
    assert found["names"]["a"].tolist() == of_all.uns[KEY]["names"]["a"].tolist()
    for name in ("scores", "pvals"):
        np.testing.assert_allclose(found[name]["a"], of_all.uns[KEY][name]["a"], rtol=1e-6)
    assert cells.uns[KEY]["classes"].tolist() == ["a", "rest"]
    assert cells.varm[f"{KEY}_centers"].shape == (12, 2)
    rank_features(cells, "type", groups=["c", "a"], reference="b")
    assert cells.uns[KEY]["names"].dtype.names == ("c", "a")
    two = cells.obs["type"].isin(["a", "b"]).to_numpy()
    model = SparseGaussianNB(pooling=1.0).fit(cells.X[two], (cells.obs["type"] == "a")[two])
    best = int(np.argmax(model.scores_ * (model.centers_[1] > model.centers_[0])))
    assert cells.uns[KEY]["names"]["a"][0] == f"g{best}"
    assert cells.uns[KEY]["params"]["reference"] == "b"
    # Cells without a group take no part.
    missing = _cells()
    missing.obs.loc[missing.obs["type"] == "c", "type"] = np.nan
    rank_features(missing, "type", groups=["a"])
    np.testing.assert_allclose(missing.uns[KEY]["scores"]["a"], cells.uns[KEY]["scores"]["a"])


def test_layers_raw_and_counts() -> None:
    cells = _cells()
    rank_features(cells, "type", estimator=SparsePoissonNB(), layer="counts")
    found, counts = cells.uns[KEY], cells.layers["counts"].toarray()
    of = (cells.obs["type"] == "a").to_numpy()
    change = np.log2(counts[of].mean(axis=0) / counts[~of].mean(axis=0))
    order = [int(gene[1:]) for gene in found["names"]["a"]]
    np.testing.assert_allclose(found["logfoldchanges"]["a"], change[order], rtol=1e-4)
    assert found["params"]["layer"] == "counts" and not found["params"]["use_raw"]
    cells.raw = cells
    part = cells[:, ["g3", "g0"]].copy()
    rank_features(part, "type")
    assert part.uns[KEY]["params"]["use_raw"] and len(part.uns[KEY]["names"]["a"]) == 12
    rank_features(cells, "type", use_raw=False)
    assert part.var[f"{KEY}_rank"].tolist() == cells.var[f"{KEY}_rank"].iloc[[3, 0]].tolist()


def test_backed_data_give_the_same(tmp_path: Path) -> None:
    cells = _cells()
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    rank_features(backed, "type")
    rank_features(cells, "type", pts=True)
    for name in ("names", "scores", "logfoldchanges", "pvals", "pvals_adj"):
        np.testing.assert_array_equal(backed.uns[KEY][name], cells.uns[KEY][name])
    backed.file.close()
    cells.write_h5ad(tmp_path / "ranked.h5ad")
    again = anndata.read_h5ad(tmp_path / "ranked.h5ad")
    assert again.uns[KEY]["names"]["a"].tolist() == cells.uns[KEY]["names"]["a"].tolist()
    pd.testing.assert_frame_equal(again.uns[KEY]["pts"], cells.uns[KEY]["pts"])


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"groupby": "kind"}, ValueError, r"no column 'kind' in adata.obs; .*\['type'"),
        ({"groups": ["d"]}, ValueError, "'d' is no group of 'type'"),
        ({"groups": "a"}, ValueError, "'all' or a sequence"),
        ({"reference": "d"}, ValueError, "'d' is no group"),
        ({"layer": "spliced"}, ValueError, r"no layer 'spliced'; there are \['counts'\]"),
        ({"use_raw": True}, ValueError, "adata.raw is empty"),
        ({"estimator": L1CenterClassifier()}, TypeError, "statistics determine.*got L1Center"),
        ({"estimator": MahalanobisCenterClassifier()}, TypeError, "select features"),
        ({"groups": []}, ValueError, "groups is empty"),
        ({"groups": None}, ValueError, "groups=None is not valid: use 'all' or a sequence"),
        ({"groups": ["a"], "reference": "a"}, ValueError, "'a' cannot be compared with itself"),
        ({"groupby": "one"}, ValueError, r"'one' has 1 group: \['x'\]. There is nothing"),
        ({"groupby": "alike"}, ValueError, "groups 1, '1' of 'alike' have one name as text"),
        ({"groupby": "empty"}, ValueError, "group '' of 'empty' cannot be a field"),
        ({"n_genes": "3"}, ValueError, "n_genes='3' is not valid"),
        ({"n_genes": 0}, ValueError, "n_genes=0 is not valid"),
        ({"key_added": None}, ValueError, "key_added=None is not valid"),
        ({"key_added": "by/type"}, ValueError, "key_added='by/type' is not valid.*slash"),
        ({"groupby": "slash", "pts": True}, ValueError, "column 'T/NK', which files cannot hold"),
        ({"min_pct": 2}, ValueError, "min_pct=2 is not valid: use a number from 0 to 1"),
        ({"min_cells": 0.5}, ValueError, "min_cells=0.5 is not valid"),
        ({"block": "batch"}, ValueError, "no column 'batch' in adata.obs"),
        ({"block": "type"}, ValueError, "block='type' is groupby too"),
        ({"block": "none"}, ValueError, "no cell of the group 'c' has a block in 'none'"),
        ({"block": "donor", "estimator": L2CenterClassifier()}, TypeError, "gains within blocks"),
        (
            {"groupby": "case", "block": "donor"},
            ValueError,
            "'donor' has .*n_permutations",
        ),
        ({"n_permutations": 9}, ValueError, "n_permutations permutes.*name a block"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], what: str) -> None:
    cells = _cells()
    half = np.arange(100) < 50
    cells.obs["one"] = pd.Categorical(["x"] * 100)
    cells.obs["alike"] = pd.Categorical([1 if x else "1" for x in half])
    cells.obs["empty"] = pd.Categorical(np.where(half, "", "x"))
    cells.obs["slash"] = pd.Categorical(np.where(half, "T/NK", "x"))
    cells.obs["none"] = cells.obs["donor"].where(cells.obs["type"] != "c")
    with pytest.raises(error, match=what):
        rank_features(cells, **{"groupby": "type", **options})
    _assert_nothing_written(cells)


def _assert_nothing_written(cells: Any) -> None:
    assert list(cells.uns) == ["log1p"] and not cells.varm and not cells.var.columns.size


def test_features_without_difference_score_zero_and_come_last() -> None:
    cells = _cells()
    cells.X = cells.X.toarray()
    cells.X[:, 7] = 2.0
    for estimator in (ShrunkenCentroidClassifier(), ShrunkenCentroidClassifier(threshold=3.0)):
        rank_features(cells, "type", estimator=estimator)
        joint = ShrunkenCentroidClassifier().fit(cells.X, cells.obs["type"].astype(str))
        np.testing.assert_allclose(cells.var[f"{KEY}_gain"], joint.scores_)
        assert cells.var[f"{KEY}_gain"].iloc[7] == 0 and cells.var[f"{KEY}_rank"].iloc[7] == 12
        centers = cells.varm[f"{KEY}_centers"]
        np.testing.assert_allclose(centers[7], 2.0)
        np.testing.assert_allclose(np.delete(centers, 7, 0)[:, [1, 0, 2]], joint.centers_.T)
        rank_features(cells, "type", estimator=estimator, rankby_abs=True)
        assert cells.uns[KEY]["names"]["a"][-1] == "g7" and cells.uns[KEY]["scores"]["a"][-1] == 0


@pytest.mark.filterwarnings("ignore")  # Zarr warns of its formats
@pytest.mark.parametrize("form", ["h5ad", "zarr", "zarr 3"])
def test_groups_of_any_name_are_written_and_read(form: str, tmp_path: Path) -> None:
    form, _, version = form.partition(" ")
    if form == "zarr":
        pytest.importorskip("zarr")
    if version and not hasattr(anndata.settings, "zarr_write_format"):
        pytest.skip("anndata writes no Zarr of format 3")
    colon = "T" if form == "zarr" and not version else "T:NK"  # which format 2 does not take
    names = ["T/NK", colon, "_index", ".", "..", "rest", "/d", "\u03b3\u03b4 T"]
    cells = _cells()
    cells.obs["type"] = pd.Categorical(np.resize(names, 100), categories=names)
    rank_features(cells, "type", groups=names[:6])
    path = tmp_path / "cells"
    with anndata.settings.override(zarr_write_format=3) if version else nullcontext():
        getattr(cells, f"write_{form}")(path)
    again = getattr(anndata, f"read_{form}")(path)
    assert again.uns[KEY]["classes"].tolist() == [*names[:6], "rest_"]
    np.testing.assert_array_equal(again.varm[f"{KEY}_centers"], cells.varm[f"{KEY}_centers"])
    for name in ("names", "scores", "pvals"):
        assert again.uns[KEY][name].dtype.names == tuple(names[:6])
        for group in names[:6]:
            np.testing.assert_array_equal(again.uns[KEY][name][group], cells.uns[KEY][name][group])


def test_raw_features_of_one_name_are_refused_unless_adata_has_the_same() -> None:
    cells = _cells()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.var_names = ["g0", "g0", *cells.var_names[2:]]
        cells.raw = cells
        part = cells[:, 1:4].copy()
    rank_features(cells, "type")
    assert cells.var[f"{KEY}_rank"].nunique() == 12
    with pytest.raises(ValueError, match=r"adata.raw has features of one name, 'g0'"):
        rank_features(part, "type")
    _assert_nothing_written(part)


@pytest.mark.parametrize("kind", ["csr", "dense", "backed"])
def test_cells_that_are_left_out_may_hold_nan(kind: str, tmp_path: Path) -> None:
    cells, whole = _cells(), _cells()
    x = cells.X.toarray()
    x[-1, 3] = np.nan  # of group c
    cells.X = x if kind == "dense" else scipy.sparse.csr_matrix(x)
    if kind == "backed":
        cells.write_h5ad(tmp_path / "cells.h5ad")
        cells = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for some in (cells, whole):
        rank_features(some, "type", groups=["a"], reference="b")
    found, expected = cells.uns[KEY], whole.uns[KEY]
    assert found["names"]["a"].tolist() == expected["names"]["a"].tolist()
    np.testing.assert_allclose(found["scores"]["a"], expected["scores"]["a"], rtol=1e-6)
    with pytest.raises(ValueError, match="NaN"):
        rank_features(cells, "type")


@pytest.mark.parametrize("size", [1, 1000])
def test_counts_get_a_warning_that_names_a_model_of_counts(size: int) -> None:
    cells = _cells()
    cells.X = cells.layers["counts"] * size
    with pytest.warns(UserWarning, match=r"look like counts.*log1p.*SparsePoissonNB"):
        rank_features(cells, "type")
    for group in GROUPS:
        assert np.isfinite(cells.uns[KEY]["logfoldchanges"][group]).all()
    cells.X = cells.X * 1.0001  # no integers: only a mean too large for a logarithm tells
    with pytest.warns(UserWarning, match="too large") if size > 1 else nullcontext():
        rank_features(cells, "type")


@pytest.mark.parametrize("kind", ["csr", "csc", "dense", "backed"])
def test_shares_of_cells_are_those_of_scanpy(kind: str, tmp_path: Path) -> None:
    cells = _cells()
    dense, group = cells.X.toarray(), cells.obs["type"].to_numpy()
    cells.X = {"csc": scipy.sparse.csc_matrix(dense), "dense": dense}.get(kind, cells.X)
    if kind == "backed":
        cells.write_h5ad(tmp_path / "cells.h5ad")
        cells = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    plain = _cells()
    rank_features(plain, "type")
    rank_features(cells, "type", pts=True)
    pts, rest = cells.uns[KEY]["pts"], cells.uns[KEY]["pts_rest"]
    for name in GROUPS:
        np.testing.assert_allclose(pts[name], np.mean(dense[group == name] != 0, axis=0))
        np.testing.assert_allclose(rest[name], np.mean(dense[group != name] != 0, axis=0))
        if kind != "dense":  # raw sums of sparse data have the same bits
            assert (cells.uns[KEY]["scores"][name] == plain.uns[KEY]["scores"][name]).all()
    assert pts.index.tolist() == plain.var_names.tolist()
    rank_features(cells, "type", groups=["a"], reference="b", pts=True)
    assert "pts_rest" not in cells.uns[KEY]
    np.testing.assert_array_equal(cells.uns[KEY]["pts"], pts[["a", "b"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy")
        rank_features(cells, "type", pts=True)
        frame = scanpy.get.rank_genes_groups_df(cells, "a", key=KEY)
    np.testing.assert_allclose(frame["pct_nz_group"], pts["a"][frame["names"]])
    np.testing.assert_allclose(frame["pct_nz_reference"], rest["a"][frame["names"]])


def test_features_that_few_cells_express_are_not_tested() -> None:
    cells, of_all = _cells(), _cells()
    rank_features(of_all, "type", pts=True)
    pts, rest = of_all.uns[KEY]["pts"], of_all.uns[KEY]["pts_rest"]
    rank_features(cells, "type", min_pct=0.65, min_cells=22)
    size = {"b": 40, "a": 30, "c": 30}
    for name in GROUPS:
        passes = (pts[name] >= 0.65) & (pts[name] * size[name] > 21.5)
        passes |= (rest[name] >= 0.65) & (rest[name] * (100 - size[name]) > 21.5)
        n = int(passes.sum())
        assert 3 < n < 12
        found = {k: cells.uns[KEY][k][name] for k in ("names", "scores", "pvals", "pvals_adj")}
        assert set(found["names"][:n]) == set(pts.index[passes])
        order = [list(of_all.uns[KEY]["names"][name]).index(g) for g in found["names"][:n]]
        for key in ("scores", "pvals"):
            np.testing.assert_array_equal(found[key][:n], of_all.uns[KEY][key][name][order])
        assert found["scores"][n:].tolist() == [0] * (12 - n)
        assert found["pvals"][n:].tolist() == found["pvals_adj"][n:].tolist() == [1] * (12 - n)
        np.testing.assert_allclose(
            found["pvals_adj"][:n], false_discovery_control(found["pvals"][:n])
        )


@pytest.mark.parametrize(
    ("estimator", "layer"), [(None, None), (SparsePoissonNB(scale="dispersion"), "counts")]
)
@pytest.mark.parametrize("reference", ["rest", "b"])
def test_blocks_are_compared_within(estimator: Any, layer: str | None, reference: str) -> None:
    cells = _cells()
    model = SparseGaussianNB(pooling=1) if estimator is None else estimator
    cells.obs.loc[cells.obs_names[:5], "donor"] = np.nan  # these cells are left out
    options = {"estimator": estimator, "layer": layer, "reference": reference, "pts": True}
    rank_features(cells, "type", block="donor", **options)
    some = cells[cells.obs["donor"].notna()].copy()
    X, group = some.X if layer is None else some.layers[layer], some.obs["type"].to_numpy()
    for name in {"a", "b", "c"} - {reference}:
        kept = np.isin(group, [name, reference]) | (reference == "rest")
        label = some.obs["donor"].astype(str) + (group == name).astype(str)
        classes, codes = np.unique(label[kept], return_inverse=True)
        statistics = model.statistics(X[kept], codes)
        donors, groups = zip(*((c[:2], c[2:]) for c in classes), strict=True)
        expected = block_gains(model, statistics, groups, donors)
        found = {k: cells.uns[KEY][k][name] for k in ("names", "scores", "pvals", "logfoldchanges")}
        order = [int(gene[1:]) for gene in found["names"]]
        one, other = (expected.groups.index(g) for g in ("True", "False"))
        sign = np.sign(expected.centers[one] - expected.centers[other])
        scores = (sign * expected.scores)[order]
        np.testing.assert_allclose(found["scores"], scores, rtol=1e-5)
        assert (np.diff(scores) <= 1e-9).all()
        np.testing.assert_allclose(found["pvals"], expected.pvalues[order], rtol=1e-6)
        shares = np.mean(X[group == name].toarray() != 0, axis=0)
        np.testing.assert_allclose(cells.uns[KEY]["pts"][name], shares)
    if reference == "rest":
        assert cells.var[f"{KEY}_rank"].nsmallest(3).index.isin(["g0", "g1", "g2"]).all()


def test_a_difference_between_donors_is_none_between_groups() -> None:
    cells = _cells()
    donor, x = cells.obs["donor"].cat.codes.to_numpy(), cells.X.toarray()
    x[:, 7] = (donor + 1) + 0.1 * x[:, 7]
    cells.X = x
    cells = cells[(donor < 2) | (cells.obs["type"] == "a")].copy()  # a has donors of its own
    rank_features(cells, "type")
    plain = {name: cells.uns[KEY][name]["a"] for name in ("names", "pvals", "logfoldchanges")}
    rank_features(cells, "type", block="donor")
    within = {name: cells.uns[KEY][name]["a"] for name in ("names", "pvals", "logfoldchanges")}
    at, by_block = (list(of["names"]).index("g7") for of in (plain, within))
    assert plain["pvals"][at] < 1e-5 and plain["logfoldchanges"][at] > 1
    assert within["pvals"][by_block] > 0.01 and abs(within["logfoldchanges"][by_block]) < 0.5


def test_groups_that_share_no_donor_with_others_are_named() -> None:
    cells = _cells()
    cells.obs.loc[cells.obs["type"] == "c", "donor"] = "d4"
    cells.obs.loc[(cells.obs["type"] != "c") & (cells.obs["donor"] == "d4"), "donor"] = "d0"
    with pytest.raises(ValueError, match=r"group 'c' is in no block of 'donor' beside"):
        rank_features(cells, "type", block="donor")
    _assert_nothing_written(cells)
    rank_features(cells, "type", groups=["a", "b"], block="donor")


def test_labels_are_permuted_within_donors_of_several_groups() -> None:
    cells = _cells()
    options = {"block": "donor", "n_permutations": 19, "random_state": 0}
    rank_features(cells, "type", **options)
    donor = cells.obs["donor"].cat.codes.to_numpy()
    expected = permutation_gains(
        SparseGaussianNB(pooling=1), cells.X, cells.obs["type"] == "a", 19, donor, random_state=0
    )
    found, within = cells.uns[KEY], _cells()
    rank_features(within, "type", block="donor")
    assert found["names"]["a"].tolist() == within.uns[KEY]["names"]["a"].tolist()
    order = [int(gene[1:]) for gene in found["names"]["a"]]
    np.testing.assert_array_equal(found["pvals"]["a"], expected.pvalues[order])


def test_whole_donors_are_permuted_where_each_is_of_one_group() -> None:
    cells, plain = _cells(), _cells()
    rank_features(cells, "case", block="donor", n_permutations=99, random_state=1)
    rank_features(plain, "case")
    donor, case = cells.obs["donor"].cat.codes.to_numpy(), cells.obs["case"] == "case"
    options = {"groups": donor, "permute": "groups", "random_state": 1}
    expected = permutation_gains(SparseGaussianNB(pooling=1), cells.X, case, 99, **options)
    found = cells.uns[KEY]
    assert (found["scores"]["case"] == plain.uns[KEY]["scores"]["case"]).all()
    order = [int(gene[1:]) for gene in found["names"]["case"]]
    np.testing.assert_array_equal(found["pvals"]["case"], expected.pvalues[order])
    assert found["pvals"]["case"].min() > 0


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_bad_values_of_cells_that_are_compared_are_named_by_their_own_row(kind: str) -> None:
    cells = _cells()
    X = cells.X.toarray()
    X[:4], X[10, 2] = np.nan, np.nan
    cells.X = scipy.sparse.csr_matrix(X) if kind == "csr" else X
    cells.obs.loc[cells.obs_names[:4], "type"] = np.nan  # these cells are left out
    with pytest.raises(ValueError, match=r"NaN in feature 2 \(first in row 10\)"):
        rank_features(cells, "type")


def test_class_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="counts each cell once: use class_weight=None"):
        rank_features(_cells(), "type", estimator=SparsePoissonNB(class_weight="balanced"))


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
@pytest.mark.filterwarnings("default::ResourceWarning", "ignore:Sending large graph")
@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_a_dask_array_gives_the_same(kind: str) -> None:
    cells = _cells()
    X = cells.X if kind == "csr" else cells.X.toarray()
    parts = [da.from_array(X[a:b], chunks=-1, asarray=False) for a, b in [(0, 45), (45, 100)]]
    lazy = _cells()
    lazy.X = da.concatenate(parts)
    nan = np.full((1, 12), np.nan)  # of group c
    bad = da.from_array(type(X)(nan) if kind == "csr" else nan, chunks=-1, asarray=False)
    with Client(processes=False, dashboard_address=":0"):
        for options in ({"pts": True}, {"block": "donor"}, {"groups": ["a"], "reference": "b"}):
            if "groups" in options:
                lazy.X = da.concatenate([parts[0], parts[1][:-1], bad])
            for some in (cells, lazy):
                rank_features(some, "type", **options)
            found, expected = lazy.uns[KEY], cells.uns[KEY]
            for name in ("scores", "pvals", "logfoldchanges"):
                np.testing.assert_allclose(found[name]["a"], expected[name]["a"], rtol=1e-6)
            assert found["names"]["a"].tolist() == expected["names"]["a"].tolist()
            for name in {"pts", "pts_rest"} & {*expected}:
                pd.testing.assert_frame_equal(found[name], expected[name])


def test_the_plots_of_scanpy(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy")
        import matplotlib.pyplot as plt

        cells = _cells()
        names = {"b": "T/NK", "a": "a", "c": "_index"}
        cells.obs["type"] = cells.obs["type"].cat.remove_unused_categories()
        cells.obs["type"] = cells.obs["type"].cat.rename_categories(names)
        for estimator in (None, L2CenterClassifier()):
            rank_features(cells, "type", estimator=estimator)
            frame = scanpy.get.rank_genes_groups_df(cells, "a", key=KEY)
            assert frame["names"].iloc[0] == "g1" and len(frame) == 12
            options = {"key": KEY, "show": False, "n_genes": 3}
            scanpy.pl.rank_genes_groups(cells, **options)
            scanpy.pl.rank_genes_groups_dotplot(cells, **options, dendrogram=False)
            scanpy.pl.rank_genes_groups_heatmap(cells, **options, dendrogram=False)
            scanpy.pl.rank_genes_groups_dotplot(
                cells, **options, dendrogram=False, values_to_plot="logfoldchanges"
            )
        plt.close("all")
