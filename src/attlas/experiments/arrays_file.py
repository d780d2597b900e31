"""Which `.npz` file beside a JSON file holds its arrays: the one that is named by its content.

`<stem>@<first 16 digits of the sha256>.npz`, so that the arrays of a pair and those of the pair
that replaces it lie beside each other until the JSON file has changed from one to the other.
Earlier versions of attlas wrote `<stem>.npz`, which is read where there is no other. No stem holds
the sign `@`: stems are keys of records, or names of claims of which only letters, digits and
`-_.()` are left.
"""

import os
import re
from pathlib import Path

_CONTENT = re.compile(r"@[0-9a-f]{16}")
_END = ".npz"


def new_arrays_file(folder: Path, stem: str, sha256: str) -> Path:
    """Where arrays are written.

    Args:
        folder: of the pair.
        stem: name of its JSON file without suffix.
        sha256: of the file's content.

    Returns:
        Path of the file, there or not.

    Examples:
        >>> new_arrays_file(Path("joint"), "0f", "0123456789abcdef" * 4).as_posix()
        'joint/0f@0123456789abcdef.npz'
    """
    return folder / f"{stem}@{sha256[:16]}{_END}"


def arrays_file(folder: Path, stem: str, sha256: str) -> Path:
    """The file with the arrays of a document.

    Args:
        folder: of the pair.
        stem: name of its JSON file without suffix.
        sha256: of the arrays, as the document says.

    Returns:
        Path of the file that is named by its content, or of `<stem>.npz` where that alone is there.

    Examples:
        >>> arrays_file(Path("never/made"), "0f", "0123456789abcdef" * 4).name
        '0f@0123456789abcdef.npz'
    """
    named, plain = new_arrays_file(folder, stem, sha256), folder / f"{stem}{_END}"
    return plain if os.path.lexists(plain) and not os.path.lexists(named) else named


def arrays_files(folder: Path, stem: str) -> tuple[Path, ...]:
    """All files with arrays of one stem: of its document, and of earlier and unfinished ones.

    Args:
        folder: of the pair.
        stem: name of its JSON file without suffix.

    Returns:
        Sorted paths; none where the folder does not exist.

    Examples:
        >>> arrays_files(Path("never/made"), "0f")
        ()
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(stem)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    paths = (folder / name for name in sorted(names) if name.endswith(_END))
    return tuple(path for path in paths if pair_stem(path) == stem)


def pair_stem(path: Path) -> str:
    """The stem of a pair.

    Args:
        path: of its JSON file, or of a file with its arrays.

    Returns:
        The name of the JSON file without suffix.

    Examples:
        >>> pair_stem(Path("a.b.json")), pair_stem(Path("a.b.npz"))
        ('a.b', 'a.b')
        >>> pair_stem(Path("a.b@0123456789abcdef.npz"))
        'a.b'
    """
    return path.stem.rpartition("@")[0] if is_named_by_content(path) else path.stem


def is_named_by_content(path: Path) -> bool:
    """Whether a file is one that attlas named by its arrays, and no other program's.

    Args:
        path: of the file.

    Returns:
        Whether the name ends in `@`, 16 digits and `.npz`.

    Examples:
        >>> is_named_by_content(Path("a@0123456789abcdef.npz")), is_named_by_content(Path("a.npz"))
        (True, False)
    """
    return path.suffix == _END and _CONTENT.fullmatch(path.stem[-17:]) is not None
