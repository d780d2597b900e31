"""Files of predictions: CSV, JSON lines, .npz, Parquet, logs of lm-evaluation-harness and Inspect.

Nothing is unpickled, and what a file may cost is bounded before it is read.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

from attlas._files.budget import PREDICTION_LINE, PREDICTIONS, archived_columns, parse_json
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.certificates.columns import EXAMPLE, Columns, Table, losses_of, texts_of
from attlas.certificates.inspect_log import inspect_table, is_inspect_log
from attlas.certificates.measures import measures_of
from attlas.certificates.parquet_file import parquet_columns
from attlas.certificates.predictions import Predictions, predictions_of
from attlas.core.errors import UserError, refuse_misfits

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".npz", ".parquet", ".eval")


def read_predictions(
    path: Path, columns: Columns | None = None, name: str | None = None
) -> Predictions:
    r"""The losses of one model from a file.

    Args:
        columns: what is in which column; by default their usual names say it.
        name: name of the model; by default the file's name.

    Raises:
        UserError: if the file cannot be read, or does not say what the losses are.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "mine.csv"
        ...     _ = file.write_text("id,label,prediction\n7,cat,cat\n8,cat,dog\n")
        ...     read_predictions(file).losses.tolist()
        [0.0, 1.0]
    """
    model = name or printable(path.stem)
    return table_predictions(read_table(path), columns or Columns(), model, printable(path.name))


@refuse_misfits
def table_predictions(table: Table, columns: Columns, name: str, place: str) -> Predictions:
    """The losses of one model from the columns of a table.

    Args:
        name: name of the model.
        place: the file, for messages.

    Raises:
        UserError: if the table does not say what the losses are.

    Examples:
        >>> table_predictions({"loss": [0.25]}, Columns(), "mine", "mine.csv").losses.tolist()
        [0.25]
    """
    losses, measured = losses_of(table, columns, place)
    return predictions_of(
        name,
        losses,
        measured,
        texts_of(table, columns.example, EXAMPLE, place),
        texts_of(table, columns.group, (), place),
        measures_of(table, columns, losses, place),
    )


def read_table(path: Path) -> Table:
    r"""The columns of a file, of one length of at least 1.

    Raises:
        UserError: if it cannot be read as what its suffix says.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "mine.tsv"
        ...     _ = file.write_text("id\tloss\n7\t0.5\n")
        ...     read_table(file)
        {'id': ['7'], 'loss': ['0.5']}
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{printable(str(path))}: give a file with one of {', '.join(SUFFIXES)}")
    try:
        content = read_plain_file(path, PREDICTIONS.bytes)
        if content is None:
            raise UserError(f"{printable(str(path))} does not exist: name a file of predictions")
        table = _table(content, suffix)
    except Damaged as damage:
        # The message of a reader of content follows the name of the file.
        text = str(damage)
        where = "" if text.startswith(str(path)) else f"{path} "
        raise UserError(printable(f"{where}{text}")) from None
    lengths = {len(values) for values in table.values()}
    if len(lengths) != 1 or 0 in lengths:
        what = "no examples" if lengths <= {0} else "columns of different lengths"
        raise UserError(f"{printable(str(path))} has {what}: give one row for each example")
    return table


def _table(content: bytes, suffix: str) -> Table:
    if suffix in (".csv", ".tsv"):
        return _separated(content, "\t" if suffix == ".tsv" else ",")
    if suffix == ".npz":
        return archived_columns(content)
    if suffix == ".parquet":
        return parquet_columns(content)
    if suffix == ".eval":
        return inspect_table(content)
    if suffix == ".json":
        if is_inspect_log(content):
            return inspect_table(content)
        rows = parse_json(content, PREDICTIONS)
        if isinstance(rows, dict) and all(isinstance(v, list) for v in rows.values()):
            return rows
        return _by_column(rows)
    return _by_column(_json_lines(content))


def _separated(content: bytes, separator: str) -> Table:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Damaged("is not a text in UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = next(reader, [])
        if len(set(names)) != len(names) or not names:
            raise Damaged("does not begin with a line of different names of columns")
        columns: dict[str, list[str]] = {name.strip(): [] for name in names}
        lists = list(columns.values())
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise Damaged(f"has {len(row)} values in line {reader.line_num}, of {len(names)}")
            if len(lists[0]) >= PREDICTIONS.entries:
                raise Damaged(f"has more than {PREDICTIONS.entries} rows")
            for values, value in zip(lists, row, strict=True):
                values.append(value)
    except csv.Error as error:
        raise Damaged(f"is no table in line {reader.line_num} ({error})") from None
    return columns


def _json_lines(content: bytes) -> list[Any]:
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        if len(rows) >= PREDICTIONS.entries:
            raise Damaged(f"has more than {PREDICTIONS.entries} rows")
        try:
            rows.append(parse_json(line, PREDICTION_LINE))
        except Damaged as damage:
            raise Damaged(f"line {number} {damage}") from None
    return rows


def _by_column(rows: Any) -> Table:
    """Columns of rows, those that every row has; one example may not have several rows."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Damaged("is no list of mappings, one for each example")
    if not rows:
        return {}
    filters = {json.dumps(row.get("filter")) for row in rows if "doc_id" in row}
    if len(filters) > 1:
        raise Damaged(
            f"has several filters ({', '.join(sorted(filters))[:100]}): keep the lines of one, "
            "chosen before you look at them"
        )
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: [row[name] for row in rows] for name in names}
