"""What the theorems of a paper say: the file `theorems.md` beside the paper's claims.

A section for each theorem, proposition or corollary that has a claim:

    ## Theorem 1: training loss

    One plain sentence, then the formula.

    $$ ... $$

    Experiments: `heads`, `margins`
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attlas.site.blocks import blocks

FILE = "theorems.md"
_EXPERIMENTS = "Experiments: "


@dataclass(frozen=True)
class TheoremText:
    """The statement of one theorem.

    Attributes:
        title: what it is about, in a few words.
        texts: blocks of the statement; the first says it in plain words.
        experiments: names of the experiments about it.
    """

    name: str
    title: str
    texts: tuple[str, ...]
    experiments: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The statement in plain words, on one line."""
        return " ".join(self.texts[0].split())


def read_theorem_texts(folders: Iterable[Path]) -> dict[str, TheoremText]:
    """The statements in the folders of a paper's claims, by the name of the theorem.

    Examples:
        >>> read_theorem_texts([])
        {}
    """
    files = [folder / FILE for folder in folders if (folder / FILE).is_file()]
    sections = (
        section
        for file in files
        for section in f"\n{file.read_text(encoding='utf-8')}".split("\n## ")[1:]
    )
    return {text.name: text for text in map(_read, sections)}


def _read(section: str) -> TheoremText:
    head, *parts = blocks(section)
    name, _, title = head.partition(": ")
    experiments = tuple(
        known for part in parts if part.startswith(_EXPERIMENTS) for known in _names(part)
    )
    texts = tuple(part for part in parts if not part.startswith(_EXPERIMENTS))
    return TheoremText(name, title, texts, experiments)


def _names(part: str) -> list[str]:
    return re.findall(r"`([^`]+)`", part)
