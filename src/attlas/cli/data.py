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
    selected = tuple(names or ())
    {Action.LIST: _list, Action.VERIFY: _verify, Action.FETCH: _fetch}[action](selected, data_dir)


def _selected(names: tuple[str, ...]) -> tuple:
    from attlas.data.sources import find_set, list_sets

    return tuple(find_set(name) for name in names) or list_sets()


def _list(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.data.sources import data_folder, is_present
    from attlas.display.terminal import show_table

    rows = []
    for data_set in _selected(names):
        place = (
            "comes with attlas" if data_set.embedded else str(data_folder(folder) / data_set.name)
        )
        state = "present" if is_present(data_set, folder) else "absent"
        rows.append((data_set.name, state, data_set.title, data_set.licence, place))
    show_table(("set", "state", "title", "licence", "place"), rows)


def _verify(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.data.sources import require_sound, verify
    from attlas.display.terminal import show_table

    findings = verify(folder, names)
    rows = [(finding.name, finding.state.value, finding.detail) for finding in findings]
    show_table(("set", "state", "detail"), rows)
    require_sound(findings, folder)


def _fetch(names: tuple[str, ...], folder: Path | None) -> None:
    from attlas.data.sources import fetch

    # Without names: only sets with an official source.
    wanted = [data_set for data_set in _selected(names) if names or data_set.remotes]
    for data_set in wanted:
        place = fetch(data_set, folder, lambda line: typer.echo(f"attlas: {line}", err=True))
        typer.echo(f"{data_set.name}: {place}")
