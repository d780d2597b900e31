"""JUnit XML for continuous integration: a test case for each claim and each of its controls."""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from attlas.claims.report_cases import Case, cases
from attlas.claims.verdict import CheckReport, Provenance

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(reports: Sequence[CheckReport]) -> str:
    """The reports of a check as JUnit XML, a suite for each paper and provenance.

    The root has no counts, which would add over provenances. Cases of a claim that was checked at
    several seeds end in the seed. A case fails if something about the
    claim or the control needs investigation; the text of the failure holds the numbers and the
    witness.

    Examples:
        >>> print(junit_xml([]).splitlines()[1])
        <testsuites name="attlas" />
    """
    suites: dict[tuple[str, Provenance | None], list[Case]] = {}
    count = Counter(report.claim for report in reports)
    for report in reports:
        paper = report.claim.partition("/")[0]
        seed = f", seed {report.verdict.seed}" if count[report.claim] > 1 else ""
        in_suite = (replace(case, name=f"{case.name}{seed}") for case in cases(report))
        suites.setdefault((paper, report.provenance), []).extend(in_suite)
    root = ElementTree.Element("testsuites", {"name": "attlas"})
    for (paper, provenance), group in suites.items():
        name = f"{paper}, {provenance}" if provenance else paper
        suite = ElementTree.SubElement(root, "testsuite", _counts(name, group) | {"errors": "0"})
        for case in group:
            attributes = {"classname": _text(paper), "name": _text(case.name)}
            node = ElementTree.SubElement(
                suite, "testcase", attributes | {"time": f"{case.seconds:.3f}"}
            )
            if case.strength:
                properties = ElementTree.SubElement(node, "properties")
                strength = {"name": "strength", "value": case.strength}
                ElementTree.SubElement(properties, "property", strength)
            if case.failures:
                message = _text("; ".join(case.failures))
                failure = ElementTree.SubElement(node, "failure", {"message": message})
                failure.text = _text(case.detail)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _counts(name: str, group: Sequence[Case]) -> dict[str, str]:
    return {
        "name": _text(name),
        "tests": str(len(group)),
        "failures": str(sum(bool(case.failures) for case in group)),
        "time": f"{sum(case.seconds for case in group):.3f}",
    }


def _text(text: str) -> str:
    """The text without characters that XML cannot hold, not even escaped."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
