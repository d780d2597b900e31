"""`attlas mcp`: checks as tools for a language model."""

import importlib
from typing import Annotated

import typer

from attlas.cli.session import require_machine, session_of


def mcp(
    context: typer.Context,
    seconds: Annotated[
        float, typer.Option(min=1, metavar="S", help="Longest time of one call.")
    ] = 120.0,
    memory: Annotated[
        float, typer.Option(min=0.5, metavar="GIB", help="Largest memory of one call.")
    ] = 4.0,
) -> None:
    """Offer the checks as tools to language models, by the Model Context Protocol."""
    require_machine()
    importlib.import_module("mcp")  # before what it depends on, so that its extra is named
    from attlas.server.child import Limits
    from attlas.server.server import serve

    serve(Limits(seconds, int(memory * 2**30)), session_of(context).results)
