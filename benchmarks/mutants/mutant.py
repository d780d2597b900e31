"""One wrong formula, and what became of it."""

import hashlib
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import benchmarks.mutants
import benchmarks.mutants.statements

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """A formula of the library with one thing wrong.

    Attributes:
        name: what is wrong, in a few words; unique within the paper.
        file: `<folder>/<name>.py` in `src/attlas`, or the name of a file in a paper's folder.
        old: text that occurs once in the file.
        new: what stands in its place.
        locator: the statement of the paper that holds the formula.
        claims: slugs of claims that are tried first; the others of the paper follow.
        sharpening: why the changed statement is true, where no claim can notice it.
    """

    name: str
    file: str
    old: str
    new: str
    locator: str
    claims: Sequence[str] = ()
    sharpening: str = ""

    @property
    def module(self) -> str:
        """Dotted name of the module that is changed."""
        inside = self.path.relative_to(ROOT).with_suffix("")
        return ".".join(inside.parts[1:])

    @property
    def path(self) -> Path:
        """The file, in the instrument or in the library of a paper."""
        place = ROOT / "src" / "attlas" / self.file
        if place.is_file():
            return place
        if self.file.startswith("claims/"):
            return ROOT / "papers" / self.file.removeprefix("claims/")
        (place,) = (ROOT / "papers").glob(f"*/library/**/{Path(self.file).name}")
        return place

    @property
    def digest(self) -> str:
        """Of the change; a stored fate with another one is out of date."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:12]

    def source(self) -> str:
        """The file with the change.

        Returns:
            Python source.

        Raises:
            ValueError: if the old text does not occur exactly once.
        """
        text = self.path.read_text(encoding="utf-8")
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"mutant '{self.name}': {self.file} has its text {times} times, not 1")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Fate:
    """What became of a mutant.

    Attributes:
        paper: whose formula was changed.
        name: of the mutant.
        digest: of the change.
        claim: the first claim that noticed it; empty for a survivor.
        defect: in which way.
        tried: number of claims checked.
        sharpening: why the changed statement is true.
    """

    paper: str
    name: str
    digest: str
    claim: str
    defect: str
    tried: int
    sharpening: str = ""

    @property
    def unexplained(self) -> bool:
        """Whether nothing noticed the change though nobody says that it is true."""
        return not self.claim and not self.sharpening

    def row(self) -> dict[str, str | int]:
        """The entry of the table.

        Returns:
            JSON values by name.
        """
        return asdict(self)


def statement(
    paper: str, name: str, locator: str, claim: str, changes: Mapping[str, tuple[str, ...]]
) -> list[Mutant]:
    """Mutants of one claim whose formula stands in its own file.

    Args:
        paper: key of the paper.
        name: of the file among its claims, without the ending.
        locator: of the statement.
        claim: its slug.
        changes: by what is wrong, the text, what stands in its place, and the sharpening if any.

    Returns:
        One mutant per change.
    """
    file = f"claims/{paper}/{name}.py"
    return [
        Mutant(f"{claim}: {wrong}", file, old, new, locator, [claim], *why)
        for wrong, (old, new, *why) in changes.items()
    ]


def mutants_of(papers: Sequence[str] = ()) -> Iterator[tuple[str, Mutant]]:
    """The mutants of the papers, all by default: of the library, and of the claims themselves.

    Args:
        papers: keys of papers, which are the names of modules of this folder and of `statements`.

    Yields:
        (paper, mutant).
    """
    for package in (benchmarks.mutants, benchmarks.mutants.statements):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            paper = info.name.rpartition(".")[2]
            if papers and paper not in papers:
                continue
            if paper not in ("__main__", "mutant", "trial", "statements"):
                for mutant in importlib.import_module(info.name).MUTANTS:
                    yield paper, mutant
