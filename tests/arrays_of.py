"""Where the arrays of a record, verdict or witness are, for tests that damage them."""

from pathlib import Path

from attlas.experiments.packed import arrays_files


def arrays_of(path: Path) -> Path:
    """The one file with arrays beside a JSON file."""
    (packed,) = arrays_files(path.parent, path.stem)
    return packed
