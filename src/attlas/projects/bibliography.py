"""The bibliography: the references of the installed papers, and what attlas cites, by key."""

from functools import cache
from importlib import resources

from attlas.core.errors import UserError
from attlas.projects.installed import installed_papers
from attlas.projects.references import PROJECT, Reference, parse_references


@cache
def all_references() -> dict[str, Reference]:
    """The references of the installed papers, and what attlas itself cites.

    Returns:
        References by key: by year, what the project wrote itself last.

    Examples:
        >>> "julistiono2024optimizing" in all_references()
        True
    """
    known: dict[str, Reference] = {}
    for paper in installed_papers():
        known |= {} if paper.project is None else paper.project.bibliography()
    text = resources.files("attlas").joinpath("references.bib").read_text(encoding="utf-8")
    known |= parse_references(text)
    return dict(sorted(known.items(), key=lambda item: _order(item[1])))


def _order(reference: Reference) -> tuple[bool, int, str]:
    return reference.authors == (PROJECT,), reference.year, reference.key


def find_reference(key: str) -> Reference:
    """The reference of a key.

    Raises:
        UserError: if there is none.

    Examples:
        >>> find_reference("julistiono2024optimizing").year
        2024
    """
    known = all_references()
    if key not in known:
        raise UserError(f"references.bib has no entry '{key}': add it")
    return known[key]
