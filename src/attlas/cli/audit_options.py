"""The options of `attlas audit`."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.session import PLACES
from attlas.core.errors import UserError

_OF_SEQUENCES = (
    *("text", "tokens", "labels", "images", "pairs"),
    *("sequences", "length", "deep_sequences"),
)
_OF_DEEP = (
    "against",
    "budget",
    "export",
    "curvature",
    "curvature_sequences",
    "learning_rate",
    "momentum",
)

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="A model, or a folder of its checkpoints; by default one that `attlas run` trained.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(metavar="weights|data|deep", help="What to measure; data if there is a text."),
]
Text = Annotated[Path | None, typer.Option(metavar="FILE", help="A text, one document per line.")]
Tokens = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Tokens: .npz with ids and lengths, .npy, or lines of numbers."
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="For a classifier: the classes of the lines of --text, or of --images, one per line.",
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="For a vision model: images, or sub-folders of them whose names are classes.",
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="For a sentence encoder: in each line a query, a tabulator, and its document.",
    ),
]
Against = Annotated[
    Path | None, typer.Option(metavar="MODEL", help="An earlier checkpoint of the model.")
]
Capture = Annotated[
    bool | None,
    typer.Option(
        "--capture/--no-capture",
        help="Run the model in PyTorch; by default where attlas cannot read it itself.",
        show_default=False,
    ),
]
IgnoreSettings = Annotated[
    bool,
    typer.Option(
        "--ignore-settings",
        help="Run a folder in PyTorch though config.json has keys that transformers does not "
        "know, as if they were not there.",
    ),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All numbers, as JSON.")]
Sequences = Annotated[int, typer.Option(min=2, help="Number of sequences to read.")]
Length = Annotated[int, typer.Option(min=2, help="Largest number of tokens per sequence.")]
DeepSequences = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Sequences on which heads are ablated at level deep: 16, or 64 with --labels, "
        "--images or --pairs.",
        show_default=False,
    ),
]
CurvatureSequences = Annotated[
    int, typer.Option(min=1, help="How many of them Hessian eigenvalues use, the shortest first.")
]
Curvature = Annotated[bool, typer.Option(help="Hessian eigenvalues of every head at level deep.")]
LearningRate = Annotated[
    float | None,
    typer.Option(help="Learning rate of gradient descent, to compare with the sharpness."),
]
Momentum = Annotated[
    float, typer.Option(help="Momentum of gradient descent, at least 0 and below 1.")
]
Budget = Annotated[
    float, typer.Option(min=0.0, help="Share of the loss that removing heads may cost.")
]
Export = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Write the model without the heads that can be removed."),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Compute also an audit of which nothing has changed.")
]
On = Annotated[
    str,
    typer.Option(
        metavar=PLACES,
        help="Where level weights computes its layers.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes of --on dask.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Allow a remote scheduler without TLS.")]


def require_used(context: typer.Context, level: str | None, on: str) -> None:
    """Check that no option on the command line would be ignored, and the training's numbers.

    Raises:
        UserError: if the level is unknown, an option belongs to another one, or the training's
            numbers are out of range.
    """
    # Here, so that other commands do not import the audit.
    from attlas.audit.deep_level.stable_step import require_step
    from attlas.audit.level import require_level

    if level is not None:
        require_level(level)

    def refuse(names: tuple[str, ...], meant: str, remedy: str) -> None:
        for name in names:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                option = f"--{name.replace('_', '-')}"
                raise UserError(f"{option} is for {meant}: leave it out, or add {remedy}")

    if level == "weights":
        refuse(_OF_SEQUENCES, "levels that read sequences", "--level data")
    if level != "deep":
        refuse(_OF_DEEP, "level deep", "--level deep")
    rate, momentum = (context.params[name] for name in ("learning_rate", "momentum"))
    if rate is None:
        refuse(("momentum",), "comparing the sharpness with a step size", "--learning-rate")
    require_step(rate, "sgd", momentum)
    if on == "local":
        refuse(("workers", "insecure"), "an audit on dask", "--on dask")
