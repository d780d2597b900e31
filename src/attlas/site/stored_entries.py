"""Pages of experiments that an earlier report has drawn, used again while nothing has changed.

An entry is stored under the sha256 of all that it follows from: the records, the sources of the
experiment with all that they import of its project and the data that the project declares, its
prose, the sources of attlas, the installed packages with the processor, the settings of matplotlib,
the references, and which data sets are there. It is stored as JSON, so that nothing is executed
when it is read.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from attlas._files.bounded_cache import tidy_entries
from attlas._files.file_changes import make_folder, write_file
from attlas._files.plain_file import Damaged, read_plain_file
from attlas._jax.processes import compile_cache
from attlas.core.errors import UserError
from attlas.projects.loading import source_digest
from attlas.projects.places import current_users, is_theirs, say_once
from attlas.site.content import Drawing, ExperimentEntry
from attlas.site.experiment_pages import ExperimentRecords
from attlas.site.figure_terms import ReadingItem

END = "-entry"
"""The end of the names of stored entries."""
MOST_BYTES = 2 * 10**8
"""Most bytes of stored entries; all experiments take a hundredth."""
_LARGEST = 2**26
_LEVEL = 1
_ARRAY = "\0array"
"""The name under which an array stands in JSON."""


def entry_folder() -> Path:
    """The folder of stored entries, beside that of compiled programs."""
    return compile_cache().with_name("entries")


class StoredEntries:
    """Entries of experiments in a folder, by all that they follow from.

    Raises:
        UserError: if the folder belongs to another user, whose markup would stand in the pages.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     len(StoredEntries(Path(home)).machine)
        64
    """

    def __init__(self, folder: Path):
        if folder.is_dir() and not is_theirs(folder, current_users()):
            raise UserError(
                f"the folder of drawn figures {folder} belongs to another user, whose markup would "
                "stand in the pages: name another with ATTLAS_CACHE=DIR, or say `attlas --trust`"
            )
        self.folder = folder

    @cached_property
    def machine(self) -> str:
        """The sha256 of what all entries follow from."""
        import matplotlib as mpl

        from attlas.data.sources import is_present, list_sets
        from attlas.experiments.unchanged import machine_digest, package_digest
        from attlas.projects.bibliography import all_references

        present = [data_set.name for data_set in list_sets() if is_present(data_set)]
        # The canvas of a page is its own: no backend draws it.
        settings = [[n, repr(mpl.rcParams[n])] for n in sorted(mpl.rcParams) if n != "backend"]
        references = sorted((key, repr(value)) for key, value in all_references().items())
        package = package_digest(without=("cli/",))
        return _digest([machine_digest(), package, settings, references, present])

    def digest(self, inputs: ExperimentRecords, code: str) -> str:
        """The sha256 of all that an entry follows from; empty where its sources are not there."""
        experiment, source = inputs.experiment, inputs.source
        sources = source_digest(experiment.source[0], experiment.home)
        if not sources:
            return ""
        names = ("title", "question", "note", "captions", "readings", "answer_text", "revision")
        texts = [[name, repr(getattr(experiment, name))] for name in names]
        records = sorted(
            [
                record.key,
                json.dumps(record.metadata, sort_keys=True, default=repr),
                *(_array_digest(name, array) for name, array in sorted(record.arrays.items())),
            ]
            for record in inputs.records
        )
        place = [experiment.name, experiment.paper, *source]
        return _digest([self.machine, code, sources, texts, place, records])

    def read(self, digest: str) -> dict[str, Any] | None:
        """The fields of an entry but its experiment and source, None where it is not stored."""
        try:
            content = read_plain_file(self.folder / f"{digest}{END}", _LARGEST)
            return None if content is None else _fields(json.loads(zlib.decompress(content)))
        except (Damaged, zlib.error, ValueError):
            return None  # drawn again, and then replaced

    def write(self, digest: str, entry: ExperimentEntry) -> None:
        """Store an entry; one whose values are no plain numbers and texts is not stored."""
        try:
            document = _document(entry)
        except _NotPlainError:
            return
        content = zlib.compress(json.dumps(document).encode(), _LEVEL)
        try:
            make_folder(self.folder)
            write_file(self.folder / f"{digest}{END}", [content], durable=False)
        except OSError as error:
            say_once(
                f"attlas: {self.folder} cannot be written ({error.strerror or error}): the next "
                "report draws all figures again"
            )

    def tidy(self) -> None:
        """Delete damaged entries, and the oldest beyond `MOST_BYTES`."""
        if self.folder.is_dir():
            tidy_entries(self.folder, END, MOST_BYTES, _is_whole)


class _NotPlainError(ValueError):
    """A value that JSON would give back as another one."""


def _document(entry: ExperimentEntry) -> dict[str, Any]:
    fields = {n: v for n, v in vars(entry).items() if n not in ("experiment", "source")}
    drawings = [
        {**vars(drawing), "items": [list(item) for item in drawing.items]}
        for drawing in entry.drawings
    ]
    return {**fields, "drawings": drawings, "values": _plain(dict(entry.values))}


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    drawings = tuple(
        Drawing(
            **{
                **drawing,
                "picture": Markup(drawing["picture"]),
                "items": tuple(ReadingItem(*item) for item in drawing["items"]),
            }
        )
        for drawing in document["drawings"]
    )
    table = None if document["table"] is None else Markup(document["table"])
    problems = tuple(document["problems"])
    values = _value(document["values"])
    changed = {"drawings": drawings, "table": table, "problems": problems, "values": values}
    return {**document, **changed}


def _plain(value: Any) -> Any:
    """A value of an answer as JSON has it, with the same text in a template."""
    if isinstance(value, np.generic):
        item = value.item()
        if str(item) != str(value):
            raise _NotPlainError
        return _plain(item)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {_ARRAY: [value.dtype.str, value.tolist()]}
    if type(value) is list:
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {str(name): _plain(entry) for name, entry in value.items()}
    raise _NotPlainError


def _value(plain: Any) -> Any:
    """A value of an answer from what `_plain` has made of it."""
    if isinstance(plain, list):
        return [_value(entry) for entry in plain]
    if isinstance(plain, dict) and _ARRAY in plain:
        kind, entries = plain[_ARRAY]
        return np.array(entries, dtype=kind)
    if isinstance(plain, dict):
        return {name: _value(entry) for name, entry in plain.items()}
    return plain


def _array_digest(name: str, array: np.ndarray) -> str:
    """The sha256 of an array with its name and form; texts and objects as they print."""
    content = np.ascontiguousarray(array)
    plain = repr(content.tolist()).encode() if content.dtype.hasobject else content.tobytes()
    text = f"{name}\0{array.dtype}\0{array.shape}\0".encode()
    return hashlib.sha256(text + plain).hexdigest()


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is_whole(content: bytes) -> bool:
    try:
        return bool(zlib.decompress(content))
    except zlib.error:
        return False
