"""`attlas certify`: how often a model is wrong on new examples, at most, with a guarantee."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attlas.cli.audit_options import IgnoreSettings
from attlas.cli.certify_options import (
    AtLeast,
    AtMost,
    Badge,
    Baseline,
    Calibration,
    Capture,
    Correct,
    Delta,
    Example,
    Files,
    FScores,
    Group,
    Images,
    InOrder,
    Json,
    Label,
    Labels,
    LedgerFile,
    Loss,
    Page,
    Prediction,
    Score,
    Sequential,
    Shift,
    Text,
    Thresholds,
    Train,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attlas.certificates.certify import Certification
    from attlas.certificates.checks import Check
    from attlas.certificates.columns import Columns, Table
    from attlas.certificates.predictions import Predictions


def certify(
    context: typer.Context,
    files: Files,
    text: Text = None,
    images: Images = None,
    labels: Labels = None,
    capture: Capture = None,
    ignore_settings: IgnoreSettings = False,
    delta: Delta = 0.05,
    at_most: AtMost = None,
    at_least: AtLeast = None,
    label: Label = None,
    prediction: Prediction = None,
    correct: Correct = None,
    loss: Loss = None,
    score: Score = None,
    threshold: Thresholds = None,
    f_score: FScores = None,
    calibration: Calibration = None,
    group: Group = None,
    example: Example = None,
    baseline: Baseline = None,
    sequential: Sequential = False,
    in_order: InOrder = False,
    train: Train = None,
    shift: Shift = None,
    ledger: LedgerFile = None,
    json_file: Json = None,
    page: Page = None,
    badge: Badge = None,
) -> None:
    """Certify how often models are wrong on new examples, from their predictions."""
    from dataclasses import replace

    from attlas.cli.certify_model import certify_streams, require_examples

    require_examples(files, text, images, labels, capture, ignore_settings)
    if text is not None and labels is None:
        _end(certify_streams(context, files, text))
        return
    columns = _columns(context)
    tables = _tables(files, text, images, labels, ignore_settings)
    several = _read(files, tables, columns, threshold or [])
    checks = (*_unseen(several, train, example), *_shifted(files, tables, shift, columns))
    plain = group is None and shift is None and not sequential
    share = 1.0 if ledger is None else _share(ledger, delta, several, plain)
    result = _certified(context, files, several, share)
    result = replace(result, checks=(*result.checks, *checks))
    _show(result)
    _write(result, context.params)
    _end(result.passes)


def _certified(
    context: typer.Context,
    files: "Sequence[Path]",
    several: "Sequence[Predictions]",
    share: float,
) -> "Certification":
    """The guarantees that the options ask for."""
    from attlas.certificates.certify import certify as certified
    from attlas.certificates.predictions import baseline_name

    options = context.params
    names = ("delta", "at_most", "at_least", "sequential", "in_order")
    return certified(
        several,
        share=share,
        baseline=baseline_name(options["baseline"], files, several, "--baseline"),
        **{name: options[name] for name in names},
    )


def _columns(context: typer.Context) -> "Columns":
    """The columns that the options name."""
    from attlas.certificates.columns import Columns

    options = context.params
    names = ("loss", "correct", "label", "prediction", "score", "example", "group")
    return Columns(
        **{name: options[name] for name in names},
        probability=options["calibration"],
        f_score=tuple(dict.fromkeys(options["f_score"] or ())),
    )


def _end(passes: bool | None) -> None:
    if passes is False:
        raise typer.Exit(1)


def _tables(
    files: "Sequence[Path]",
    text: Path | None,
    images: Path | None,
    labels: Path | None,
    ignore_settings: bool,
) -> "list[Table]":
    """The columns of every file, or of every model's answers."""
    from attlas.certificates.prediction_file import read_table
    from attlas.cli.certify_model import model_tables

    if text is None and images is None:
        return [read_table(path) for path in files]
    return model_tables(files, text, images, labels, ignore_settings)


def _share(ledger: Path, delta: float, several: "Sequence[Predictions]", plain: bool) -> float:
    """The part of delta of this look, which is written into the ledger."""
    from attlas.certificates.ledger import take_look
    from attlas.core.errors import UserError

    if not plain or several[0].measures:
        raise UserError(
            "--ledger prices one count of each file: leave --group, --sequential, --shift, "
            "--f-score and --calibration out"
        )
    return take_look(ledger, delta, several)


def _read(
    files: "Sequence[Path]",
    tables: "Sequence[Table]",
    columns: "Columns",
    thresholds: "Sequence[float]",
) -> "list[Predictions]":
    """The predictions of every file, at every threshold."""
    from dataclasses import replace

    from attlas._files.plain_file import printable
    from attlas.certificates.prediction_file import table_predictions
    from attlas.core.errors import UserError

    if thresholds and columns.score is None:
        raise UserError("--threshold compares with a score: name its column with --score")
    if len(thresholds) > 1 and columns.probability is not None:
        raise UserError("--calibration is of a score, whatever the threshold: give one --threshold")
    stems = [path.resolve().name if path.is_dir() else path.stem for path in files]
    several = []
    for path, stem, table in zip(files, stems, tables, strict=True):
        name = printable(stem if stems.count(stem) == 1 else str(path))
        for value in thresholds or [None]:
            model = f"{name} from {value:g} on" if len(thresholds) > 1 else name
            at = replace(columns, threshold=value)
            several.append(table_predictions(table, at, model, printable(path.name)))
    return several


def _unseen(
    several: "Sequence[Predictions]", train: Path | None, example: str | None
) -> "tuple[Check, ...]":
    """What is known of the training file: that it has none of the test examples."""
    from attlas.certificates.checks import require_unseen
    from attlas.certificates.columns import EXAMPLE, texts_of
    from attlas.certificates.prediction_file import read_table
    from attlas.core.errors import UserError

    if train is None:
        return ()
    trained = texts_of(read_table(train), example, EXAMPLE, str(train))
    if not trained or not several[0].examples:
        raise UserError("--train compares examples by a column of both files: name it with --id")
    return (require_unseen(several[0].examples, trained, str(train)),)


def _shifted(
    files: "Sequence[Path]", tables: "Sequence[Table]", shift: Path | None, columns: "Columns"
) -> "tuple[Check, ...]":
    """Whether the answers in another file look like those of the test set."""
    from attlas._files.plain_file import printable
    from attlas.certificates.prediction_file import read_table
    from attlas.certificates.shift import shift_checks
    from attlas.core.errors import UserError

    if shift is None:
        return ()
    if len(files) > 1:
        raise UserError("--shift compares answers of one model: give one file beside it")
    names = (printable(path.name) for path in (files[0], shift))
    return shift_checks(tables[0], read_table(shift), columns, *names)


def _show(result: "Certification") -> None:
    from attlas.certificates.document import (
        comparison_rows,
        guarantee_rows,
        measure_rows,
        sentences,
    )
    from attlas.display.terminal import say, show_table

    headings, rows = guarantee_rows(result)
    show_table(headings, rows, always=("at most",))
    if result.measures:
        show_table(*measure_rows(result), always=("guaranteed",), title="Further measures")
    if result.comparisons:
        show_table(*comparison_rows(result), title="Comparisons on the same examples")
    say("")
    for sentence in sentences(result):
        say(sentence)


def _write(result: "Certification", options: "Mapping[str, Any]") -> None:
    """Write the files that were asked for."""
    from attlas.certificates.document import certification_json
    from attlas.cli.certify_model import write_certificate

    def page() -> str:
        from attlas.site.certificate_page import render_certificate

        return render_certificate(result)

    def badge() -> str:
        from attlas.site.certificate_page import certificate_badge

        return certificate_badge(result)

    write_certificate(options, certification_json(result), page, badge)
