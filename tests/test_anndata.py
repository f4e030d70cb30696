"""Ranked features in scanpy's form."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.feature_selection import f_classif

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseGaussianNB,
    SparsePoissonNB,
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
    centers = cells.varm["l2_centers"]
    assert centers.columns.tolist() == GROUPS
    np.testing.assert_allclose(centers[["a", "b", "c"]], joint.centers_.T, rtol=1e-12)
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
    assert cells.varm[f"{KEY}_centers"].columns.tolist() == ["a", "rest"]
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
    rank_features(cells, "type")
    for name in ("names", "scores", "logfoldchanges", "pvals", "pvals_adj"):
        np.testing.assert_array_equal(backed.uns[KEY][name], cells.uns[KEY][name])
    backed.file.close()
    cells.write_h5ad(tmp_path / "ranked.h5ad")
    again = anndata.read_h5ad(tmp_path / "ranked.h5ad")
    assert again.uns[KEY]["names"]["a"].tolist() == cells.uns[KEY]["names"]["a"].tolist()


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"groupby": "kind"}, ValueError, r"no column 'kind' in adata.obs; .*\['type'\]"),
        ({"groups": ["d"]}, ValueError, "'d' is no group of 'type'"),
        ({"groups": "a"}, ValueError, "'all' or a sequence"),
        ({"reference": "d"}, ValueError, "'d' is no group"),
        ({"layer": "spliced"}, ValueError, r"no layer 'spliced'; there are \['counts'\]"),
        ({"use_raw": True}, ValueError, "adata.raw is empty"),
        ({"estimator": L1CenterClassifier()}, TypeError, "statistics determine.*got L1Center"),
        ({"estimator": MahalanobisCenterClassifier()}, TypeError, "select features"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        rank_features(_cells(), **{"groupby": "type", **options})


def test_the_plots_of_scanpy(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy")
        import matplotlib.pyplot as plt

        cells = _cells()
        cells.obs["type"] = cells.obs["type"].cat.remove_unused_categories()
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
