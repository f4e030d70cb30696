"""``python -m bench``."""

from __future__ import annotations

import argparse
import os
import warnings

from gpucenters import DeviceUnavailableError, UninformativeFeaturesWarning

from . import (
    cluster,
    duality,
    fit,
    gmeb,
    gpu,
    mahalanobis,
    models,
    multiclass,
    path,
    permutations,
    scaling,
    stream,
)
from .shapes import FIT_SHAPES


def main() -> None:
    """Run one bench."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="bench", required=True)
    one = commands.add_parser("fit", help="time fits and predictions beside their peers")
    one.add_argument("shapes", nargs="+", choices=[*FIT_SHAPES, "all"])
    one.add_argument("--labels", choices=["int", "str", "object"], default="int")
    one.add_argument(
        "--skip", nargs="*", default=[], help="rows to leave out, by a part of their name"
    )
    slope = commands.add_parser("scaling", help="time against rows, width and classes")
    slope.add_argument("--sizes", type=int, default=5)
    batch = commands.add_parser("stream", help="what one more batch costs, against width")
    gap = commands.add_parser("duality", help="the bounds of sparse multinomial naive Bayes, by k")
    gap.add_argument("--sizes", type=int, nargs="+", default=[30, 3000], help="numbers of features")
    gap.add_argument("--seed", type=int, default=0)
    gap.add_argument("--png", help="draw a picture into this file (needs matplotlib)")
    gap.add_argument("--json", help="write the figures to this file")
    device = commands.add_parser("gpu", help="fits on a CUDA device beside its bare operations")
    device.add_argument("shapes", nargs="*", choices=[*gpu.GPU_SHAPES, "all"], default="all")
    device.add_argument("--no-cpu", dest="cpu", action="store_false", help="leave the CPU out")
    device.add_argument("--repeat", type=int, default=7, help="rounds, alternating")
    device.add_argument("--json", help="write the figures to this file")
    full = commands.add_parser("mahalanobis", help="a full covariance, beside LDA")
    shuffle = commands.add_parser("permutations", help="permuted labels beside a loop of refits")
    shuffle.add_argument("--permutations", type=int, default=1000)
    shuffle.add_argument("--models", nargs="+", choices=list(permutations.MODELS), default=["l2"])
    binary = commands.add_parser("multiclass", help="decompositions beside one joint fit")
    binary.add_argument(
        "--data", nargs="+", choices=list(multiclass.DATA), default=["20-newsgroups"]
    )
    binary.add_argument("--models", nargs="+", choices=list(multiclass.MODELS), default=["l2"])
    binary.add_argument("--skip", nargs="*", default=[], help="rows to leave out, by their name")
    ks = commands.add_parser("path", help="scores of 40 numbers of features, beside a grid search")
    folder = os.environ.get("GPUCENTERS_DATA", "../shared/data")
    ks.add_argument("--data", default=folder, help="folder of mpqa.tsv.gz and singh.npz")
    ks.add_argument("--tweets", action="store_true", help="1.6 million tweets too")
    ks.add_argument("--repeat", type=int, default=3, help="rounds, alternating")
    ks.add_argument("--png", help="draw a picture into this file (needs matplotlib)")
    ks.add_argument("--json", help="write the figures to this file")
    margin = commands.add_parser("gmeb", help="GMEB: its paper's experiments, and beside l1-SVM")
    margin.add_argument("parts", nargs="*", choices=list(gmeb.PARTS), default=["times"])
    margin.add_argument("--data", default=folder, help="folder of the real data sets")
    margin.add_argument("--repeat", type=int, default=3, help="rounds of times, alternating")
    margin.add_argument("--repetitions", type=int, default=10, help="draws of synthetic data")
    margin.add_argument("--sets", nargs="+", choices=gmeb.REAL, default=list(gmeb.REAL))
    margin.add_argument(
        "--folds", type=int, default=10, help="of ten, on which real data are tested"
    )
    margin.add_argument("--json", help="write the figures to this file")
    nodes = commands.add_parser("cluster", help="a fit on a Dask cluster beside the local fit")
    nodes.add_argument("--workers", type=int, default=2)
    nodes.add_argument("--partitions", type=int, default=16)
    nodes.add_argument("--rows", type=int, default=1_600_000, help="of each partition")
    nodes.add_argument("--models", nargs="+", choices=list(cluster.MODELS), default=["l2"])
    nodes.add_argument("--gpus", action="store_true", help="a worker for each GPU (dask-cuda)")
    nodes.add_argument("--repeat", type=int, default=3, help="rounds, alternating")
    nodes.add_argument("--json", help="write the figures to this file")
    which = commands.add_parser("models", help="accuracies of all models at shares of the features")
    which.add_argument("--data", default=folder, help="folder of the data sets")
    which.add_argument("--splits", type=int, default=5)
    which.add_argument("--json", help="write the figures to this file")
    for parser_ in (one, slope, batch, full, shuffle, binary):
        parser_.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or auto")
        parser_.add_argument("--repeat", type=int, default=5, help="rounds, alternating")
        parser_.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    # (Rows of k = 1 on text, where no column may have a positive l1 gain.)
    warnings.simplefilter("ignore", UninformativeFeaturesWarning)
    benches = {
        "cluster": cluster,
        "duality": duality,
        "fit": fit,
        "gmeb": gmeb,
        "gpu": gpu,
        "mahalanobis": mahalanobis,
        "models": models,
        "multiclass": multiclass,
        "path": path,
        "permutations": permutations,
        "scaling": scaling,
        "stream": stream,
    }
    try:
        benches[options.bench].run(options)
    except DeviceUnavailableError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
