"""Where the arrays of a record, verdict or witness are, for tests that damage them."""

from pathlib import Path

from attlas.experiments.pair import file_pair


def arrays_of(path: Path) -> Path:
    """The one file with arrays beside a JSON file."""
    (packed,) = file_pair(path.parent, path.stem).all_data()
    return packed
