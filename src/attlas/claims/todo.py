"""Statements of a paper that no claim executes yet, or that cannot be executed."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attlas.core.errors import UserError
from attlas.projects.project import paper_of


@dataclass(frozen=True)
class Todo:
    """A statement that is not a claim: it has no verdict and is never counted as supported.

    Attributes:
        paper: key of the project of its file.
        locator: where it stands in the paper, such as "Lemma 3.2".
        label: its label in the LaTeX sources; empty without one.
        kind: the kind of claim that it may become, a guess; empty without one.
        assumptions: the paper's assumptions that it refers to.
        reason: why it cannot be executed; empty while it is to do.
        statement: its text.
        place: file and line.
        home: where another process finds it.
    """

    paper: str
    locator: str
    label: str
    kind: str
    assumptions: tuple[str, ...]
    reason: str
    statement: str
    place: tuple[str, int]
    home: str = ""


def todo(
    locator: str,
    *,
    label: str = "",
    kind: str = "",
    assumptions: Sequence[str] = (),
    reason: str = "",
) -> Callable[[Callable[..., Any]], Todo]:
    r"""Mark a function as the stub of a statement: `attlas coverage` lists it, nothing runs it.

    Replace it by `@inequality(locator, ...)` or another kind to execute the statement.

    Args:
        locator: where the statement stands, such as "Lemma 3.2".
        label: its label in the LaTeX sources.
        kind: the kind of claim that it may become.
        assumptions: the paper's assumptions that it refers to.
        reason: why it cannot be executed, such as "about every continuous function"; then it is no
            longer counted as to do.

    Raises:
        UserError: if it is written without a locator.

    Examples:
        >>> @todo("Lemma 3.2", kind="limit")
        ... def lemma_3_2():
        ...     r"$$x_t \to 0$$"
        >>> lemma_3_2.locator, lemma_3_2.statement, lemma_3_2.reason
        ('Lemma 3.2', '$$x_t \\to 0$$', '')
    """
    if not isinstance(locator, str) or not locator:
        raise UserError('@todo needs where the statement stands: write @todo("Lemma 3.2")')

    def wrap(function: Callable[..., Any]) -> Todo:
        code = inspect.unwrap(function).__code__
        return Todo(
            paper=paper_of(code.co_filename) or "notebook",
            locator=locator,
            label=label,
            kind=kind,
            assumptions=tuple(assumptions),
            reason=reason,
            statement=inspect.cleandoc(function.__doc__ or ""),
            place=(code.co_filename, code.co_firstlineno),
        )

    return wrap
