"""`attlas data`: real data sets."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Action(StrEnum):
    """What to do with the data sets."""

    LIST = "list"
    VERIFY = "verify"
    FETCH = "fetch"


def data(
    action: Annotated[Action, typer.Argument(help="list, verify or fetch.")] = Action.LIST,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SET]...", help="All sets by default.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="ATTLAS_DATA", metavar="DIR", help="Folder of the data sets."),
    ] = None,
) -> None:
    """List, verify or fetch the real data sets."""
    chosen = tuple(names or ())
    {Action.LIST: _list, Action.VERIFY: _verify, Action.FETCH: _fetch}[action](chosen, data_dir)


def _chosen(names: tuple[str, ...]) -> tuple:
    from attlas.data.sources import find_set, list_sets

    return tuple(find_set(name) for name in names) or list_sets()


def _list(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.cli.tables import show_table
    from attlas.data.sources import data_folder, is_present

    rows = []
    for each in _chosen(names):
        place = "comes with a dependency" if each.embedded else str(data_folder(folder) / each.name)
        state = "present" if is_present(each, folder) else "absent"
        rows.append((each.name, state, each.title, each.licence, place))
    show_table(("set", "state", "title", "licence", "place"), rows)


def _verify(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.cli.tables import show_table
    from attlas.data.sources import require_sound, verify

    findings = verify(folder, names)
    rows = [(found.name, found.state.value, found.detail) for found in findings]
    show_table(("set", "state", "detail"), rows)
    require_sound(findings, folder)


def _fetch(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.data.sources import fetch

    # Without a name only what has an official source is meant.
    wanted = [each for each in _chosen(names) if names or each.remotes]
    for each in wanted:
        typer.echo(f"{each.name}: {fetch(each, folder)}")
