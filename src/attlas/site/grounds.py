"""The evidence that a text may name, and the text with the numbers of its evidence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from attlas.claims.claim import ErratumClass
from attlas.claims.verdict import Outcome, Provenance
from attlas.display.numbers import plain_number
from attlas.experiments.prose import has_gaps
from attlas.site.claim_entry import ClaimEntry
from attlas.site.content import ExperimentEntry
from attlas.site.finding import Evidence
from attlas.site.links import anchor


class LeftOutError(Exception):
    """The evidence for a sentence is missing or contradicts it."""


class Grounds:
    """The possible evidence for a paper's texts, and the evidence that the last text used.

    Args:
        name: how a text names a claim.

    Examples:
        >>> Grounds([], [], lambda entry: entry.slug).written("{{ holds('lemma-1') }} It holds.")
        ''
    """

    def __init__(
        self,
        claims: Sequence[ClaimEntry],
        experiments: Sequence[ExperimentEntry],
        name: Callable[[ClaimEntry], str],
        audits: Sequence[Mapping[str, Any]] = (),
    ):
        self.claims = {name(entry): entry for entry in claims}
        self.experiments = {entry.experiment.name: entry for entry in experiments}
        self.audits = audits
        self.used: dict[str, Evidence] = {}
        self.share: tuple[int, int] | None = None

    def written(self, template: str) -> str:
        """A template with its numbers; empty if evidence is missing or contradicts it."""
        self.used = {}
        environment = Environment(undefined=StrictUndefined, autoescape=False)
        environment.globals |= self.functions()
        try:
            text = environment.from_string(template).render().strip()
        except LeftOutError:
            return ""
        return "" if has_gaps(text) else text

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that a template may call."""
        numbers = ("statement", "tightness", "loss", "value", "refuted", "broken_steps", "printed")
        names = ("holds", "fails", *numbers, "audited", "leads")
        return {name: getattr(self, name) for name in names}

    def holds(self, *slugs: str) -> str:
        """Require that claims are supported and that nothing about them is unexpected."""
        for slug in slugs:
            self._required(slug, Outcome.SUPPORTED)
        return ""

    def fails(self, *slugs: str) -> str:
        """Require that statements are violated on an instance."""
        for slug in slugs:
            self._required(slug, Outcome.VIOLATED)
        return ""

    def statement(self, slug: str) -> str:
        """The formula of a supported claim, in LaTeX."""
        return self._required(slug, Outcome.SUPPORTED).claim.statement

    def tightness(self, slug: str) -> str:
        """The largest ratio of left to right side in check or challenge."""
        return plain_number(self._ratio(slug), 2)

    def loss(self, slug: str) -> str:
        """The factor by which the right side exceeds the left one on the tightest instance."""
        ratio = self._ratio(slug)
        if not ratio:
            raise LeftOutError
        return plain_number(1 / ratio, 2)

    def value(self, experiment: str, name: str) -> Any:
        """A value of an experiment's answer."""
        entry = self.experiments.get(experiment)
        if entry is None or not entry.answer or name not in entry.values:
            raise LeftOutError
        self._use(entry.experiment.title, entry.anchor, entry.scale)
        return entry.values[name]

    def refuted(self) -> int:
        """The number of printed statements with a counterexample."""
        return self._counted(ErratumClass.REFUTED)

    def broken_steps(self) -> int:
        """The number of steps in printed proofs with a counterexample."""
        return self._counted(ErratumClass.INVALID_PROOF)

    def printed(self) -> dict[str, int]:
        """The numbers of false statements among those that we read in print and checked.

        `false` are refuted; `slips` have a counterexample too, by a typo, a gap or a wrong step.
        """
        entries = [
            entry
            for entry in self.claims.values()
            if entry.provenance is Provenance.PRINTED and entry.report and not entry.unexpected
        ]
        if not entries:
            raise LeftOutError
        false = sum(entry.refuted for entry in entries)
        slips = sum(entry.outcome is Outcome.VIOLATED for entry in entries) - false
        self._use("refuted statements", "refuted")
        self.share = (false, len(entries))
        return {"false": false, "slips": slips, "all": len(entries)}

    def audited(self) -> dict[str, str]:
        """The model of a stored audit with what to do, else with what stands out; empty without.

        `decided` is empty where the audit does not say what to do.
        """
        for audit in sorted(self.audits, key=lambda audit: not audit.get("decisions")):
            if audit["findings"]:
                self._use("audits", "audits")
                first = audit["findings"][0]
                model = self._model(audit["model"]["name"])
                decided = "yes" if audit.get("decisions") else ""
                return {"model": model, "sentence": first["sentence"], "decided": decided}
        return {}

    def _model(self, name: str) -> str:
        """A model's name without remarks; in words where an experiment has trained it."""
        bare = name.split(" (")[0]
        for experiment, entry in self.experiments.items():
            if bare.startswith(f"{experiment}-"):
                self._use(entry.experiment.title, entry.anchor)
                return f"the network that the experiment “{entry.experiment.title}” trained"
        return bare

    def leads(self, question: str) -> str:
        """Name a question of users as the place to read on."""
        self._use(question, anchor("question", question))
        return ""

    def _counted(self, kind: ErratumClass) -> int:
        refuted_entries = [
            entry
            for entry in self.claims.values()
            if entry.outcome is Outcome.VIOLATED
            and not (entry.unexpected or entry.suspected)
            and any(erratum.kind is kind for erratum in entry.errata)
        ]
        if not refuted_entries:
            raise LeftOutError
        for entry in refuted_entries:
            self._use(entry.claim.locator, entry.anchor)
        return len(refuted_entries)

    def _required(self, slug: str, outcome: Outcome) -> ClaimEntry:
        entry = self.claims.get(slug)
        if entry is None or entry.outcome is not outcome or entry.unexpected:
            raise LeftOutError
        self._use(entry.claim.locator, entry.anchor)
        return entry

    def _ratio(self, slug: str) -> float:
        report = self._required(slug, Outcome.SUPPORTED).report
        assert report is not None
        ratios = [report.verdict.tightness, report.challenge and report.challenge.ratio]
        known_ratios = [ratio for ratio in ratios if ratio is not None]
        if not known_ratios:
            raise LeftOutError
        return max(known_ratios)

    def _use(self, name: str, anchor: str, scale: str = "") -> None:
        self.used[anchor] = Evidence(name, anchor, scale)


def folders_of(claims: Iterable[ClaimEntry]) -> list[Path]:
    """Folders of the claims' files, in the order of the claims.

    Examples:
        >>> folders_of([])
        []
    """
    # Few files have all claims, and a path takes far longer to make than a text.
    files = dict.fromkeys(entry.claim.place[0] for entry in claims)
    return list(dict.fromkeys(Path(file).parent for file in files))
