"""Errata in four lines: the file `errata.md` beside a paper's claims.

A section for each erratum that a claim shows, under the claim's name without its paper:

    ## lemma-1-printed

    - Printed: what stands in the paper.
    - Why false: an instance to compute by hand.
    - Repair: what is true instead.
    - Affected: who has to care.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from attlas.claims.claim import Erratum
from attlas.core.errors import refuse_unreadable
from attlas.site.content import PaperEntry
from attlas.site.grounds import folders_of

FILE = "errata.md"
LINES = ("Printed", "Why false", "Repair", "Affected")
_LINE = re.compile(rf"^- ({'|'.join(LINES)}): (.+)$", re.MULTILINE)


@refuse_unreadable
def lines_of(paper: PaperEntry, erratum: Erratum) -> Mapping[str, str]:
    """The lines of an erratum by their heads; empty if nobody has written them.

    Examples:
        >>> from attlas.claims.claim import ErratumClass
        >>> paper = PaperEntry("a", None, (), (), (), ())
        >>> lines_of(paper, Erratum("a", "Lemma 1", ErratumClass.GAP, "A step is missing."))
        {}
    """
    if not erratum.claim:
        return {}
    lines = _of_folders(tuple(folders_of(paper.claims)))
    return lines.get(erratum.claim.split("/", 1)[1], {})


def read_lines(folders: Iterable[Path]) -> dict[str, dict[str, str]]:
    """The lines of all errata in some folders, by the name of the claim.

    Examples:
        >>> read_lines([])
        {}
    """
    files = [folder / FILE for folder in folders if (folder / FILE).is_file()]
    sections = (
        section.partition("\n")
        for file in files
        for section in f"\n{file.read_text(encoding='utf-8')}".split("\n## ")[1:]
    )
    return {name.strip(): dict(_LINE.findall(body)) for name, _, body in sections}


@cache
def _of_folders(folders: tuple[Path, ...]) -> dict[str, dict[str, str]]:
    return read_lines(folders)
