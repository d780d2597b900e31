"""The files that `attlas check` writes besides its table: for machines, papers and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.verdict import CheckReport
    from attlas.experiments.store import Store


@dataclass(frozen=True)
class CheckFiles:
    """The requested files, None for the others."""

    json: Path | None = None
    latex: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    badge: Path | None = None

    def probe(self) -> None:
        """Check that all files can be written, before anything is computed."""
        from attlas.core.errors import UserError
        from attlas.experiments.text_file import probe_text_file

        for name, file in vars(self).items():
            if file is not None:
                probe_text_file(file, f"--{name}")
        if self.badge is not None and self.badge.suffix.lower() not in (".svg", ".json"):
            raise UserError(f"--badge {self.badge} ends in neither .svg nor .json: name one")

    def write(
        self,
        claims: "Sequence[Claim]",
        reports: "Mapping[str, Sequence[CheckReport]]",
        store: "Store",
    ) -> None:
        """Write all requested files.

        JSON and JUnit have a report for each claim and seed. Tables and badge show the stored
        reports, which keep the challenge of an earlier check.
        """
        from attlas.experiments.report_document import report_document
        from attlas.experiments.text_file import write_json_file, write_text_file

        checked = [report for claim in claims for report in reports[claim.name]]
        if self.json is not None:
            documents = [report_document(report) for report in checked]
            write_json_file(self.json, documents, "--json")
        if self.junit is not None:
            from attlas.site.junit import junit_xml

            write_text_file(self.junit, junit_xml(checked), "--junit")
        if not (self.latex or self.markdown or self.badge):
            return
        rows, environment = _stored(claims, store)
        if self.latex is not None:
            from attlas.site.latex import latex_table

            write_text_file(self.latex, latex_table(rows, environment), "--latex")
        if self.markdown is not None:
            from attlas.site.markdown import markdown_table

            write_text_file(self.markdown, markdown_table(rows, environment), "--markdown")
        if self.badge is not None:
            from attlas.claims.claim import provenance_of
            from attlas.site.badge import badge_text

            text = badge_text(
                self.badge, [(provenance_of(claim), report) for claim, report in rows]
            )
            write_text_file(self.badge, text, "--badge")


def _stored(
    claims: "Sequence[Claim]", store: "Store"
) -> "tuple[list[tuple[Claim, CheckReport]], dict[str, str]]":
    """Claims with their stored reports, and the environments of these."""
    from attlas.experiments.environment import summarise_environment
    from attlas.experiments.verdicts import read_reports

    stored = {report.claim: (report, metadata) for report, metadata in read_reports(store)}
    results = [stored[claim.name] for claim in claims]
    rows = [(claim, report) for claim, (report, _) in zip(claims, results, strict=True)]
    return rows, summarise_environment(metadata for _, metadata in results)
