"""The bibliography: the references of the installed papers, and what attlas cites, by key."""

from functools import cache
from importlib import resources

from attlas.core.errors import UserError
from attlas.projects.installed import installed_papers, set_aside
from attlas.projects.references import PROJECT, Reference, parse_references


@cache
def all_references() -> dict[str, Reference]:
    """References of the installed papers and of attlas itself, by key; in order of years.

    Statements of attlas itself come last. A paper whose file cannot be read is set aside.

    Examples:
        >>> "julistiono2024optimizing" in all_references()
        True
    """
    references: dict[str, Reference] = {}
    for paper in installed_papers():
        try:
            references |= {} if paper.project is None else paper.project.bibliography()
        except UserError as error:
            set_aside(paper.name, error)
    text = resources.files("attlas").joinpath("references.bib").read_text(encoding="utf-8")
    references |= parse_references(text)
    return dict(sorted(references.items(), key=lambda item: _order(item[1])))


def _order(reference: Reference) -> tuple[bool, int, str]:
    return reference.authors == (PROJECT,), reference.year, reference.key


def find_reference(key: str) -> Reference:
    """The reference of a key.

    Raises:
        UserError: if no bibliography has it.

    Examples:
        >>> find_reference("julistiono2024optimizing").year
        2024
    """
    references = all_references()
    if key not in references:
        raise UserError(f"references.bib has no entry '{key}': add it")
    return references[key]
