"""The options of `attlas audit`."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.session import PLACES

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="A model, or a folder of its checkpoints; one that a run trained when left out.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(metavar="weights|data|deep", help="What is measured; data when words are."),
]
Text = Annotated[Path | None, typer.Option(metavar="FILE", help="A text, one document per line.")]
Tokens = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Tokens: .npz with ids and lengths, .npy, or lines of numbers."
    ),
]
Against = Annotated[
    Path | None, typer.Option(metavar="MODEL", help="An earlier checkpoint of the model.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All numbers, as JSON.")]
Sequences = Annotated[int, typer.Option(min=2, help="Sequences of the batch.")]
Length = Annotated[int, typer.Option(min=2, help="Largest number of tokens of each.")]
DeepSequences = Annotated[
    int, typer.Option(min=2, help="Sequences that removals take at level deep.")
]
CurvatureSequences = Annotated[
    int, typer.Option(min=1, help="Of these, the shortest, that Hessian extremes take.")
]
Curvature = Annotated[bool, typer.Option(help="Hessian extremes of every head at level deep.")]
LearningRate = Annotated[
    float | None, typer.Option(help="Of the training: level deep sets it against the sharpness.")
]
Momentum = Annotated[float, typer.Option(help="Of the optimiser, gradient descent.")]
On = Annotated[
    str,
    typer.Option(
        metavar=PLACES,
        help="Where level weights computes its layers.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes of --on dask.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow a scheduler elsewhere without TLS.")
]
