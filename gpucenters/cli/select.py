"""``gpucenters select``."""

from __future__ import annotations

from typing import Annotated

import typer

from .data import AsJson, DataOptions, DataPath, check_files, check_place
from .output import say, show_json


def select(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    data: DataPath,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help=".npz, .npy, .csv or .tsv."),
    ],
    k: Annotated[
        str | None,
        typer.Option("--k", "-k", metavar="N|10%|all", help="Fewer features than the model has."),
    ] = None,
    reading: DataOptions,
    json: AsJson = False,
) -> None:
    """Write the columns that a model has selected, with labels and names where there are some."""
    check_place(output, model, data, reading.labels)
    check_files(model, data, reading.labels)
    from ..readers.errors import counted
    from .models import parse_k
    from .trained import Trained
    from .writers import COLUMN_FORMATS, write_columns

    if output.rpartition(".")[2] not in COLUMN_FORMATS:
        raise typer.BadParameter(
            f"{output!r} is no name for columns: use .npz, .npy, .csv or .tsv."
        )
    chosen_k = None if k is None else parse_k(k)
    trained = Trained.load(model, "cpu")
    if not trained.selects:
        raise ValueError(
            f"{model}: the binary models of {type(trained.classifier).__name__} select features "
            "each for itself, so there are no columns of the whole model to write."
        )
    if chosen_k is not None:
        trained = trained.with_k(chosen_k)
    options = reading.like(trained.reading, data)
    found = options.read(data, trained.n_features, trained.wanted)
    columns = trained.classifier.transform(trained.features(found, data))
    names = [str(name) for name in trained.names()]
    write_columns(output, columns, found.y, names)
    if json:
        shape = {"samples": columns.shape[0], "features": columns.shape[1]}
        show_json(shape | {"names": names, "output": output})
    else:
        samples, features = map(counted, columns.shape, ("sample", "feature"))
        say(f"{samples} x {features} in {output}")
