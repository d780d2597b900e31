"""The theorems, propositions and corollaries of a paper: verdicts, tightness and requirements."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attlas.claims.claim import Erratum, ErratumClass
from attlas.claims.strength import best_ratio
from attlas.claims.verdict import Provenance
from attlas.core.errors import refuse_misfits
from attlas.site.claim_entry import ClaimEntry, ClaimGroup, claim_groups
from attlas.site.content import PaperEntry
from attlas.site.erratum_lines import lines_of
from attlas.site.evidence_level import EvidenceLevel, sentence
from attlas.site.finding import Finding
from attlas.site.grounds import folders_of
from attlas.site.links import anchor
from attlas.site.theorem_texts import TheoremText, read_theorem_texts

REQUIREMENTS = "What it asks for"
"""The section of the findings on the requirements of the theorems."""
_PLURALS = {"Theorem": "Theorems", "Proposition": "Propositions", "Corollary": "Corollaries"}
_KINDS = {word: kind for kind, plural in _PLURALS.items() for word in (kind, plural)}
_LABEL = r"[A-Z]?\.?\d+(?:\.\d+)*(?![\w.]*\w)"
_SINGLE, _SEVERAL = "|".join(_PLURALS), "|".join(_PLURALS.values())
_LABELS = rf"{_LABEL}(?:(?:, and |, | and ){_LABEL})+"
_NUMBERED = re.compile(rf"(?P<kind>{_SEVERAL}) (?P<labels>{_LABELS})|({_SINGLE}) ({_LABEL})")
_NAMED = re.compile(r"[A-Z][\w -]* theorem(?=,|$)")


@dataclass(frozen=True)
class Theorem:
    """One theorem, proposition or corollary of a paper with the claims that check it.

    Attributes:
        stated: claims on the paper's own statement, as printed, recalled or reconstructed.
        ours: claims on a corrected or sharpened form, and on the theorem itself.
        requirements: findings on the theorem's assumptions in practice.
        errata: errata of the paper that name the theorem, are shown by one of its claims or say
            that it is affected, with their places in the paper's list; the gravest comes first.
        shown: claims of the paper that are named by its errata.
        text: its statement, None if nobody has written it.
    """

    paper: str
    name: str
    stated: tuple[ClaimEntry, ...]
    ours: tuple[ClaimEntry, ...]
    requirements: tuple[Finding, ...]
    errata: tuple[tuple[int, Erratum], ...] = ()
    shown: tuple[ClaimEntry, ...] = ()
    text: TheoremText | None = None

    @property
    def claims(self) -> tuple[ClaimEntry, ...]:
        """The claims on the theorem, those on the paper's own statement first."""
        return (*self.stated, *self.ours)

    @property
    def anchor(self) -> str:
        """The theorem's fragment of the page."""
        return anchor("theorem", f"{self.paper} {self.name.removeprefix('Theorem ')}")

    @property
    def standings(self) -> tuple[tuple[str, str, tuple[ClaimEntry, ...]], ...]:
        """For each provenance: its name, counts of evidence levels, and its claims."""
        return tuple((str(g.provenance), _counted(g), g.claims) for g in self._groups)

    @property
    def _groups(self) -> tuple[ClaimGroup, ...]:
        return claim_groups(self.claims)

    @property
    def tightness(self) -> tuple[ClaimEntry, float] | None:
        """The loosest claim on the paper's own statement, with its ratio nearest to equality.

        None where a claim on the statement has a counterexample, and without such inequalities:
        identities leave no room, and steps of proofs and our own forms are not the theorem.
        """
        if any(entry.level is EvidenceLevel.COUNTEREXAMPLE for entry in self.stated):
            return None
        candidates = [
            (entry, ratio)
            for entry in self.stated
            if not entry.claim.kind.rule.equality and "proof" not in entry.claim.locator
            if entry.report and entry.level is EvidenceLevel.HELD
            if (ratio := best_ratio(entry.report)) is not None
        ]
        return min(candidates, key=lambda pair: pair[1], default=None)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the claims on the paper's statement, without duplicates."""
        texts = (assumption.text for entry in self.stated for assumption in entry.claim.assumptions)
        return tuple(dict.fromkeys(texts))


def theorems_of(paper: PaperEntry) -> tuple[Theorem, ...]:
    """The theorems of a paper that have claims, by kind and number, the appendix's last."""
    texts = read_theorem_texts(folders_of(paper.claims))
    groups: dict[str, list[ClaimEntry]] = {}
    for entry in paper.claims:
        for name in theorem_names(entry.claim.locator):
            groups.setdefault(name, []).append(entry)
    requirements = [
        f for section in paper.findings if section.title == REQUIREMENTS for f in section.findings
    ]
    errata = {name: _errata(paper, name, entries) for name, entries in groups.items()}
    return tuple(
        Theorem(
            paper=paper.key,
            name=name,
            stated=tuple(entry for entry in entries if entry.provenance is not Provenance.OWN),
            ours=tuple(entry for entry in entries if entry.provenance is Provenance.OWN),
            requirements=tuple(
                finding for finding in requirements if _is_about(finding, name, entries)
            ),
            errata=errata[name],
            shown=_showing(paper, errata[name]),
            text=texts.get(name),
        )
        for name, entries in sorted(groups.items(), key=lambda group: _order(group[0]))
    )


def _errata(
    paper: PaperEntry, name: str, entries: Sequence[ClaimEntry]
) -> tuple[tuple[int, Erratum], ...]:
    stated = {e.claim.name for e in entries if e.provenance is not Provenance.OWN}
    return tuple(
        (place, erratum)
        for place, erratum in ranked(paper.errata)
        if name in _mentioned(erratum.locator)
        or erratum.claim in stated
        or name in _mentioned(lines_of(paper, erratum).get("Affected", ""))
    )


def _showing(paper: PaperEntry, errata: Sequence[tuple[int, Erratum]]) -> tuple[ClaimEntry, ...]:
    """The claims that the errata name."""
    named = {erratum.claim for _, erratum in errata if erratum.claim}
    return tuple(entry for entry in paper.claims if entry.claim.name in named)


@refuse_misfits
def gravity(erratum: Erratum) -> int:
    """The rank of an erratum: refuted statements first, misprints last.

    Examples:
        >>> gravity(Erratum("a", "Lemma 1", ErratumClass.TYPO, "A sign."))
        4
    """
    return list(ErratumClass).index(erratum.kind)


@refuse_misfits
def ranked(errata: Sequence[Erratum]) -> list[tuple[int, Erratum]]:
    """Errata with their places in the list, the gravest first.

    Examples:
        >>> one, two = (Erratum("a", "L1", ErratumClass(c), "") for c in ("typo", "gap"))
        >>> [(place, erratum.kind.value) for place, erratum in ranked([one, two])]
        [(2, 'gap'), (1, 'typo')]
    """
    return sorted(enumerate(errata, 1), key=lambda pair: gravity(pair[1]))


def theorem_names(locator: str) -> tuple[str, ...]:
    """The theorems, propositions and corollaries that begin a locator.

    Examples:
        >>> theorem_names("Theorem 4.2, the width"), theorem_names("Lemma 1, Theorem 3")
        (('Theorem 4.2',), ())
        >>> theorem_names("Corollaries 4.1.1 and D.0.1, sharpened")
        ('Corollary 4.1.1', 'Corollary D.0.1')
        >>> theorem_names("Direction theorem, on the descent")
        ('Direction theorem',)
    """
    named = _NAMED.match(locator)
    if named:
        return (named.group(),)
    start = _NUMBERED.match(locator)
    if start is None:
        return ()
    names = _numbered(start)
    if locator.startswith(" and ", start.end()):
        names += theorem_names(locator[start.end() + len(" and ") :])
    return names


def _mentioned(locator: str) -> set[str]:
    return {name for match in _NUMBERED.finditer(locator) for name in _numbered(match)}


def _numbered(match: re.Match[str]) -> tuple[str, ...]:
    labels = re.findall(_LABEL, match["labels"] or match[4])
    return tuple(f"{_KINDS[match['kind'] or match[3]]} {label}" for label in labels)


def _order(name: str) -> tuple[int, bool, str, list[int]]:
    kind, _, label = name.partition(" ")
    kinds = list(_PLURALS)
    if kind not in kinds:
        return (-1, False, "", [])
    return (
        kinds.index(kind),
        not label[0].isdigit(),
        label.rstrip("0123456789."),
        [int(digits) for digits in re.findall(r"\d+", label)],
    )


def _is_about(finding: Finding, name: str, entries: Sequence[ClaimEntry]) -> bool:
    mentions = re.search(rf"{re.escape(name)}(?!\.?\w)", finding.text) is not None
    return mentions or bool({e.anchor for e in entries} & {e.anchor for e in finding.evidence})


def _counted(group: ClaimGroup) -> str:
    return sentence(entry.report for entry in group.claims)
