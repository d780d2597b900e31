"""Writers outside the store: new papers, downloads, lines of monitors, marks of drivers."""

import json
from pathlib import Path
from typing import Any

from crash.writer import DAMAGED, Notes, Writer, one, with_value

from attlas._files.appended_lines import append_line, whole_lines
from attlas._files.plain_file import read_plain_file
from attlas.cli.new import update_project, write_paper
from attlas.core.errors import UserError
from attlas.data.sources import DataSet, Remote, content_manifest, fetch, read_verified
from attlas.experiments.checkpoint_files import driver_mark
from attlas.projects.latex import stubs
from attlas.projects.latex.statements import read_paper
from attlas.projects.latex.stubs import stub_pattern

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


CLAIM = """
import attlas as at


@at.inequality("Lemma 2", controls=[at.Control("half", factor=0.5)])
def second(a, *, factor=1.0):
    r"$$a \\le a$$"
    return a, factor * a
"""


def _paper_with_stubs(root: Path) -> None:
    """A project whose author executes the second of two lemmas, and its paper of then and now."""
    first = r"\begin{lemma}\label{a} $1 < 2$ \end{lemma} \begin{lemma}\label{b} $2 < 3$ \end{lemma}"
    new = r"\begin{lemma}\label{new} $0 < 1$ \end{lemma} "
    other = r"\begin{lemma}\label{other} $3 < 4$ \end{lemma} "
    for value, text in ((1, first), (2, new + first), (3, other + new + first)):
        (root / f"tex{value}").mkdir()
        head = r"\documentclass{article}\newtheorem{lemma}{Lemma}\begin{document}"
        (root / f"tex{value}" / "main.tex").write_text(f"{head} {text} \\end{{document}}")
    paper = read_paper(root / "tex1" / "main.tex")
    statements = stubs.statements_text(paper.title, paper.statements, "../tex1/main.tex")
    texts = {**stubs.stub_files(paper), stubs.STATEMENTS: statements}
    write_paper("doe2026", "On tokens", root / "paper", FILES, texts)
    (file,) = (root / "paper").glob("claims_*.py")
    stub = stub_pattern(paper.statements[1])
    file.write_text(stub.sub("", file.read_text()))
    (root / "paper" / "claims_mine.py").write_text(CLAIM)


def updated_paper(root: Path, value: int) -> None:
    try:
        paper = read_paper(root / f"tex{value}" / "main.tex")
        update_project(root / "paper", paper, f"../tex{value}/main.tex", renumber=True)
    except OSError as error:  # as `attlas new` does
        raise UserError("cannot be written") from error


def read_updated_paper(root: Path) -> Any:
    """The statements, and the files of claims beside them."""
    try:
        statements = stubs.read_statements(root / "paper").statements
    except UserError:
        return DAMAGED
    claims = {path.name: path.read_text() for path in (root / "paper").glob("claims*.py")}
    return [[statement.locator for statement in statements], dict(sorted(claims.items()))]


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
        "updated paper",
        updated_paper,
        read_updated_paper,
        {"an old one": _paper_with_stubs},
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
