"""Which `.npz` file beside a JSON file holds its arrays: the one that is named by its content.

`<stem>@<first 16 digits of the sha256>.npz`: old and new arrays coexist until the JSON file names
the new ones. Earlier versions of attlas wrote `<stem>.npz`, which is still read if it is alone.
A stem never contains `@`: it is a record's key, or a claim's name reduced to letters, digits and
`-_.()`.
"""

import os
import re
from pathlib import Path

_CONTENT = re.compile(r"@[0-9a-f]{16}")
_END = ".npz"


def new_arrays_file(folder: Path, stem: str, sha256: str) -> Path:
    """Where to write the arrays of the pair `stem`.

    Examples:
        >>> new_arrays_file(Path("joint"), "0f", "0123456789abcdef" * 4).as_posix()
        'joint/0f@0123456789abcdef.npz'
    """
    return folder / f"{stem}@{sha256[:16]}{_END}"


def arrays_file(folder: Path, stem: str, sha256: str) -> Path:
    """Where to read the arrays of the pair `stem`: `<stem>.npz` if only that exists.

    Examples:
        >>> arrays_file(Path("never/made"), "0f", "0123456789abcdef" * 4).name
        '0f@0123456789abcdef.npz'
    """
    named, plain = new_arrays_file(folder, stem, sha256), folder / f"{stem}{_END}"
    return plain if os.path.lexists(plain) and not os.path.lexists(named) else named


def arrays_files(folder: Path, stem: str) -> tuple[Path, ...]:
    """All files with arrays of one stem, sorted: the current one, replaced and unfinished ones.

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
    """The stem of a pair, from its JSON file or a file with its arrays.

    Examples:
        >>> pair_stem(Path("a.b.json")), pair_stem(Path("a.b.npz"))
        ('a.b', 'a.b')
        >>> pair_stem(Path("a.b@0123456789abcdef.npz"))
        'a.b'
    """
    return path.stem.rpartition("@")[0] if is_named_by_content(path) else path.stem


def is_named_by_content(path: Path) -> bool:
    """Whether attlas named the file by its arrays: the name ends in `@`, 16 digits and `.npz`.

    Examples:
        >>> is_named_by_content(Path("a@0123456789abcdef.npz")), is_named_by_content(Path("a.npz"))
        (True, False)
    """
    return path.suffix == _END and _CONTENT.fullmatch(path.stem[-17:]) is not None
