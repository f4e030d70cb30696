"""``python -m bench``."""

from __future__ import annotations

import argparse
import warnings

from gpucenters import DeviceUnavailableError, UninformativeFeaturesWarning

from . import (
    card,
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
    reproduce,
    scaling,
    stream,
    text,
)

BENCHES = {
    "fit": fit,
    "scaling": scaling,
    "stream": stream,
    "text": text,
    "duality": duality,
    "gpu": gpu,
    "card": card,
    "mahalanobis": mahalanobis,
    "permutations": permutations,
    "multiclass": multiclass,
    "path": path,
    "gmeb": gmeb,
    "cluster": cluster,
    "models": models,
    "reproduce": reproduce,
}


def main() -> None:
    """Run one bench."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="bench", required=True)
    for name, bench in BENCHES.items():
        about = (bench.__doc__ or "").splitlines()[0]
        of_bench = commands.add_parser(name, help=about, description=bench.__doc__)
        bench.add_arguments(of_bench)
        of_bench.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    # (Rows of k = 1 on text, where no column may have a positive l1 gain.)
    warnings.simplefilter("ignore", UninformativeFeaturesWarning)
    try:
        BENCHES[options.bench].run(options)
    except DeviceUnavailableError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
