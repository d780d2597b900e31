"""The options of `attlas certify`."""

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Predictions of a model each: .csv, .tsv, .jsonl, .json, .npz, .parquet, or logs "
        "of lm-evaluation-harness and Inspect (.jsonl, .json, .eval); or folders of models, "
        "with --text or --images.",
    ),
]
Delta = Annotated[float, typer.Option(help="Probability that any guarantee fails.", metavar="P")]
AtMost = Annotated[
    float | None,
    typer.Option(
        metavar="RISK",
        help="Exit 1 if no model is certified at this risk, or at these bits per token.",
    ),
]
AtLeast = Annotated[
    float | None,
    typer.Option(metavar="F1", help="Exit 1 if no model has certified F1 scores of at least this."),
]
Text = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Let the models in the folders answer this text, a document per line; without "
        "--labels, certify the bits per token that they need.",
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Let vision models in the folders answer these images, in sub-folders whose names "
        "are classes, or with --labels.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Right classes of the lines of --text, or of the --images in the order of their "
        "paths, one per line.",
    ),
]
Capture = Annotated[
    bool | None,
    typer.Option(
        "--capture/--no-capture",
        help="Run a language model in PyTorch; by default where attlas cannot read it itself.",
        show_default=False,
    ),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Right answers.")]
Prediction = Annotated[str | None, typer.Option(metavar="COLUMN", help="Answers of the model.")]
Correct = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Grades in [0, 1], 1 for right.")
]
Loss = Annotated[str | None, typer.Option(metavar="COLUMN", help="Losses in [0, 1].")]
Score = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Probability of the label 1, for --threshold."),
]
Thresholds = Annotated[
    list[float] | None,
    typer.Option(metavar="T", help="Predict 1 from this score on; repeatable. [0.5]"),
]
FScores = Annotated[
    list[str] | None,
    typer.Option("--f-score", metavar="CLASS", help="Certify its F1 score, too; repeatable."),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Probability that the answer is right, or the column of --score: certify its "
        "calibration error and Brier score, too.",
    ),
]
Group = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Certify each group of examples, too.")
]
Example = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="What names an example. [id]")
]
Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Compare with this one of the files. [the first]"),
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential", help="Give bounds that hold after every example, in the file's order."
    ),
]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order", help="Test files in order at the whole P, until one is not certified."
    ),
]
Train = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Refuse test examples whose --id is in this file."),
]
Shift = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Test whether this unlabelled file's answers are distributed alike.",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json", help="Pay for earlier looks at these examples, kept in this file."
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all numbers as JSON.")
]
Page = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write the report as a page.")]
Badge = Annotated[
    Path | None, typer.Option(metavar="FILE.svg", help="Write a badge of the best bound.")
]
