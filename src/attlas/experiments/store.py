"""The results folder: records by experiment and key, damaged ones quarantined."""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from attlas._files.plain_file import Damaged, printable, stems
from attlas.core.errors import UserError
from attlas.experiments.pair import probe_folder, read_or_set_aside, read_pair, write_pair

if TYPE_CHECKING:  # a check of claims reads and writes no record
    from attlas.experiments.cell import Cell
    from attlas.experiments.index import Index
    from attlas.experiments.record import Record

FOLDER = "attlas-results"
WITNESSES = "witnesses"
PUBLISHED = "published"
"""The name of the published records where a results folder is expected."""
_CHECKOUT = Path(__file__).parents[2]


def results_folder(named: Path | str | None = None) -> Path:
    """The results folder: the named one, else ATTLAS_RESULTS, else `attlas-results` here.

    Args:
        named: the user's choice, if any; `published` means the records of the repository.

    Raises:
        UserError: if it is `published` and the records are not installed.

    Examples:
        >>> results_folder("there").name
        'there'
    """
    if str(named) == PUBLISHED:
        return _published_folder()
    return Path(named or os.environ.get("ATTLAS_RESULTS") or FOLDER)


def published_store() -> "Store | None":
    """The store of the published records; None if they are not installed.

    Examples:
        >>> published = published_store()
        >>> published is None or published.root.name
        'records'
    """
    return Store(PUBLISHED) if _has_published() else None


def _has_published() -> bool:
    return _CHECKOUT.name == "src" and (_CHECKOUT.parent / "records").is_dir()


def _published_folder() -> Path:
    if not _has_published():
        raise UserError(
            "the published records are in the repository of attlas and not in this installation: "
            "clone the repository and name its folder records"
        )
    return _CHECKOUT.parent / "records"


class Store:
    """Records on disk, one pair of files per cell, see `attlas.experiments.pair`.

    A record is `<root>/<experiment>/<key>.json` with the `.npz` file of its arrays beside it.

    Attributes:
        notes: one line for each damaged pair so far.
        on_note: called with each such line.
    """

    def __init__(
        self, root: Path | str | None = None, on_note: Callable[[str], None] | None = None
    ):
        self.root = results_folder(root)
        self.notes: list[str] = []
        self.on_note = on_note
        self._indexes: dict[str, Index] = {}

    def note(self, text: str) -> None:
        """Store one line about a damaged file and pass it to `on_note`."""
        line = printable(text)
        self.notes.append(line)
        if self.on_note is not None:
            self.on_note(line)

    def index(self, experiment: str) -> "Index":
        """The index of an experiment's records, see `attlas.experiments.index`."""
        if experiment not in self._indexes:
            from attlas.experiments.index import Index

            self._indexes[experiment] = Index(self.root / experiment, "record", self.note)
        return self._indexes[experiment]

    def prepare(self, experiment: str) -> None:
        """Create the folder of an experiment; raises UserError if it cannot be written."""
        probe_folder(self.root / experiment)

    def write(self, record: "Record") -> Path:
        """Write one record atomically; returns the path of its JSON file.

        Raises:
            UserError: if the folder cannot be written or the disk is full.
        """
        document = {
            "kind": "record",
            "experiment": record.experiment,
            "key": record.key,
            "cell": {
                "settings": dict(record.cell.settings),
                "seed": record.cell.seed,
                "dtype": record.cell.dtype,
                "data_hash": record.cell.data_hash,
            },
            "layout": {
                "dims": {name: list(dims) for name, dims in record.layout.dims.items()},
                "coordinates": list(record.layout.coordinates),
            },
            "metadata": dict(record.metadata),
        }
        return write_pair(
            self.root / record.experiment, record.key, document, record.arrays, self.note
        )

    def read(self, experiment: str, key: str) -> "Record | None":
        """Read and verify one record; None if the cell is not finished.

        Raises:
            Damaged: if it was truncated or altered, or does not fit its schema or its arrays.
            UserError: if it was written under another schema.
        """
        folder = self.root / experiment
        pair = read_pair(folder, key, "record", self.index(experiment))
        if pair is None:
            return None
        from attlas.experiments.cell import Cell
        from attlas.experiments.record import Layout, Record, record_key

        document, arrays = pair
        cell = Cell(**document["cell"])
        metadata = document["metadata"]
        true_key = record_key(document["experiment"], metadata["revision"], cell)
        if not (true_key == document["key"] == key and document["experiment"] == experiment):
            raise Damaged(f"{folder / key}.json was renamed (its key is {true_key[:12]})")
        dims = {name: tuple(axes) for name, axes in document["layout"]["dims"].items()}
        layout = Layout(dims, tuple(document["layout"]["coordinates"]))
        misfit = layout.misfit({name: array.shape for name, array in arrays.items()})
        if misfit:
            raise Damaged(f"{folder / key}.json is not a data set ({misfit})")
        return Record(experiment, cell, arrays, metadata, key, layout)

    def read_or_quarantine(self, experiment: str, key: str) -> "Record | None":
        """Read one record, or None; a damaged one is reported and moved to `quarantine/`.

        Raises:
            UserError: if it was written under another schema, or cannot be moved.
        """
        return read_or_set_aside(
            self.root / experiment,
            key,
            lambda: self.read(experiment, key),
            self.note,
            consequence="the cell is recomputed",
            refusals=(Damaged,),
        )

    def keys(self, experiment: str) -> tuple[str, ...]:
        """The keys of all finished cells of an experiment, sorted; see `names`."""
        return self.names(experiment, ".json")

    def names(self, folder: str, suffix: str = "") -> tuple[str, ...]:
        """The sorted names with a suffix in a folder below the root, without the suffix.

        There are none if the folder does not exist, or cannot be read, which is noted.
        """
        try:
            return stems(self.root / folder, suffix)
        except Damaged as damage:
            self.note(f"{damage}: ignored")
            return ()

    def records(self, experiment: str, but: Collection[str] = ()) -> "tuple[Record, ...]":
        """All good records of an experiment, of every revision and code, in order of their cells.

        Damaged ones are noted but not moved. If there are many, an index is written beside them.

        Raises:
            UserError: if a record was written under another schema.
        """
        good = []
        for key in self.keys(experiment):
            if key in but:
                continue
            try:
                record = self.read(experiment, key)
            except Damaged as damage:
                self.note(f"{damage}: ignored; rerun the experiment to replace it")
                continue
            if record is not None:
                good.append(record)
        self.index(experiment).save()
        return tuple(sorted(good, key=lambda r: (_order(r.cell), r.key)))

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"


def _order(cell: "Cell") -> str:
    """A sort key that keeps the seeds of equal settings together; settings sort as text."""
    return f"{sorted(cell.settings.items())} {cell.dtype} {cell.seed:09d}"


def claim_place(root: Path, claim: str) -> tuple[Path, str]:
    """Folder of a claim's paper below a root, and its file stem with unusual characters replaced.

    Examples:
        >>> folder, stem = claim_place(Path("verdicts"), "mine/triangle (L2)")
        >>> folder.name, stem
        ('mine', 'triangle_(L2)')
    """
    paper, _, slug = "".join(c if c.isalnum() or c in "-_.()/" else "_" for c in claim).partition(
        "/"
    )
    return root / paper, slug.replace("/", "_").lstrip(".")
