"""The global options, passed from the application to its commands."""

from dataclasses import dataclass
from pathlib import Path

import typer

PLACES = "local|dask|dask://HOST:PORT|tls://HOST:PORT"
"""Values of `--on`."""
EXIT_INTERRUPTED = 130
"""The exit code that shells expect after Ctrl-C."""


@dataclass(frozen=True)
class Session:
    """The global options; the folder `results` need not exist."""

    results: Path = Path("attlas-results")
    debug: bool = False


def session_of(context: typer.Context, opened: Session | None = None) -> Session:
    """The session of a command; the application sets it with `opened`."""
    if opened is not None:
        context.obj = opened
    return context.obj if isinstance(context.obj, Session) else Session()
