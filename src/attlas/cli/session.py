"""What the global options say, handed from the application to its commands."""

from dataclasses import dataclass
from pathlib import Path

import typer

PLACES = "local|dask|dask://HOST:PORT|tls://HOST:PORT"
"""What `--on` takes."""
EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


@dataclass(frozen=True)
class Session:
    """The global options.

    Attributes:
        results: folder of records and verdicts; it need not exist.
        debug: whether errors are shown with their traceback.
    """

    results: Path = Path("attlas-results")
    debug: bool = False


def session_of(context: typer.Context, opened: Session | None = None) -> Session:
    """The session of a command; with `opened`, the session is set first.

    Args:
        opened: the session to set, by the application only.
    """
    if opened is not None:
        context.obj = opened
    return context.obj if isinstance(context.obj, Session) else Session()
