"""Writers outside the store: new papers, downloads, lines of monitors, marks of drivers."""

import json
from pathlib import Path
from typing import Any

from crash.writer import DAMAGED, Notes, Writer, one, with_value

from attlas._files.appended_lines import append_line, whole_lines
from attlas._files.plain_file import read_plain_file
from attlas.cli.new import write_paper
from attlas.core.errors import UserError
from attlas.data.sources import DataSet, Remote, content_manifest, fetch, read_verified
from attlas.experiments.checkpoint_files import driver_mark

FILES = {
    "references.bib": "references.bib.txt",
    "pyproject.toml": "pyproject.toml.txt",
    ".github/workflows/attlas.yml": "attlas.yml.txt",
}


def project(root: Path, value: int) -> None:
    """A new paper; one that is there stays."""
    try:
        write_paper("doe2026", "On tokens", root / "paper", FILES)
    except UserError as error:
        if "exists already" not in str(error):
            raise


def read_project(root: Path) -> Any:
    """A folder is a project once its pyproject.toml is there."""
    paths = [root / "paper" / name for name in FILES]
    if not (root / "paper" / "pyproject.toml").exists():
        return None
    return [path.read_text() for path in paths] if all(p.exists() for p in paths) else DAMAGED


def _latex(root: Path) -> None:
    (root / "paper").mkdir()
    (root / "paper" / "main.tex").write_text("A theorem.")


PARTS = {"one": b"one", "two": b"two"}
WORDS = DataSet(
    name="words",
    title="two words",
    licence="none",
    files=tuple(PARTS),
    read=lambda folder: {name: (folder / name).read_bytes() for name in PARTS},
    canonical=lambda content: {name: [part] for name, part in content.items()},
    manifest=content_manifest({name: [part] for name, part in PARTS.items()}),
    remotes=tuple(Remote(f"https://localhost/{name}", "", name) for name in PARTS),
)


def copied(url: str, checksum: str, fname: str, path: Path) -> None:
    """A download, in place of that of pooch."""
    path.mkdir(exist_ok=True)
    (path / fname).write_bytes(PARTS[fname])


def download(root: Path, value: int) -> Notes:
    notes: Notes = []
    fetch(WORDS, root, notes.append)
    return notes


def read_download(root: Path) -> Any:
    if not any((root / "words" / name).exists() for name in PARTS):
        return "absent"
    try:
        read_verified(WORDS, root)
    except UserError:
        return "not whole"
    return "verified"


def _damaged_download(root: Path) -> None:
    download(root, 1)
    (root / "words" / "one").write_text("on")


def line(root: Path, value: int) -> None:
    if read_line(root) == {"step": value}:
        return
    try:
        append_line(root / "a.monitor.jsonl", json.dumps({"step": value}))
    except OSError as error:  # as the monitor does
        raise UserError("cannot be written") from error


def read_line(root: Path) -> Any:
    """The last whole line."""
    content = read_plain_file(root / "a.monitor.jsonl", 10**6)
    lines = whole_lines(content or b"").splitlines()
    return json.loads(lines[-1]) if lines else None


def _torn_line(root: Path) -> None:
    line(root, 1)
    with (root / "a.monitor.jsonl").open("a") as file:
        file.write('{"step": ')


def mark(root: Path, value: int) -> None:
    with driver_mark(root) as path:
        assert Path(path).exists()


OUTSIDE = (
    Writer(
        "new paper",
        project,
        read_project,
        {"LaTeX": _latex, "nothing": lambda root: None},
        is_single=True,
    ),
    Writer(
        "download",
        download,
        read_download,
        {"damaged files": _damaged_download, "nothing": lambda root: None},
    ),
    Writer(
        "line of a monitor",
        line,
        read_line,
        {
            "a line": with_value(line),
            "a torn line": _torn_line,
            "nothing": lambda root: None,
        },
        is_single=True,
    ),
    one("mark of a driver", mark, lambda root: None, is_quiet=True),
)
