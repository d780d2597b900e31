"""`attlas challenge`: search for a counterexample, or evaluate a stored one again."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.machine import require_machine
from attlas.cli.session import session_of

if TYPE_CHECKING:
    from attlas.core.claim import Claim
    from attlas.core.verdict import Verdict

EXIT_BROKEN = 1


def challenge(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[CLAIM or PLACE]")] = None,
    seconds: Annotated[
        float, typer.Option(min=0, metavar="S", help="Time for the search, after compilation.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first starting points.")] = 0,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Re-evaluate a stored instance.")
    ] = None,
) -> None:
    """Search for a violation of an inequality; exit 1 when a claim that should hold is broken."""
    require_machine()  # before JAX is imported
    from attlas.core.processes import checker_variables

    # Before JAX is imported: a search compiles for seconds and runs for few.
    os.environ.update(checker_variables(1))
    if replay is not None:
        claim, verdict = _replay(name, replay)
    else:
        claim, verdict = _search(context, name, seconds, seed)
    if verdict.outcome == "VIOLATED" and claim.expect.outcome == "SUPPORTED":
        raise typer.Exit(EXIT_BROKEN)


def _one_claim(name: str | None) -> "Claim":
    from attlas.core.errors import UserError
    from attlas.verify.registry import find_claims

    if name is None:
        raise UserError("challenge needs a CLAIM, or --replay FILE: see `attlas list claims`")
    claim, *others = find_claims([name])
    if others:
        count = 1 + len(others)
        raise UserError(f"'{name}' names {count} claims: choose one of `attlas list claims`")
    return claim


def _search(
    context: typer.Context, name: str | None, seconds: float, seed: int
) -> "tuple[Claim, Verdict]":
    from attlas.cli.tables import number
    from attlas.core.prose import plain
    from attlas.runs.store import Store
    from attlas.runs.witness import FOLDER, write_witness
    from attlas.verify.challenge import challenge as search

    claim = _one_claim(name)
    store = Store(session_of(context).results)
    store.prepare(FOLDER)
    found = search(claim, seconds=seconds, seed=seed)
    typer.echo(f"claim       {claim.name} ({plain(claim.locator)})")
    typer.echo(f"best ratio  {number(found.ratio)} of left over right side")
    _show(found.verdict)
    if found.verdict.witness is not None:
        facts = {
            "ratio": found.ratio,
            "violated": bool(found.violated),
            "seed": found.verdict.seed,
            "starts": found.starts,
            "steps": found.steps,
        }
        path = write_witness(store, claim.name, found.verdict.witness, facts)
        typer.echo(f"witness     {path}")
    return claim, found.verdict


def _replay(name: str | None, file: Path) -> "tuple[Claim, Verdict]":
    from attlas.core.errors import UserError
    from attlas.core.prose import plain
    from attlas.runs.witness import read_witness
    from attlas.verify.challenge import replay

    stored = read_witness(file)
    claim = _one_claim(stored.claim if name is None else name)
    if claim.name != stored.claim:
        raise UserError(f"{file} is an instance of '{stored.claim}', not of '{name}'")
    try:
        verdict = replay(claim, dict(stored.arrays))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} does not fit '{claim.name}' of this attlas ({type(error).__name__}): search "
            "again with `attlas challenge`"
        ) from error
    typer.echo(f"claim       {claim.name} ({plain(claim.locator)})")
    _show(verdict)
    return claim, verdict


def _show(verdict: "Verdict") -> None:
    from attlas.cli.tables import number

    typer.echo(f"verdict     {verdict.outcome}: {verdict.reason}")
    typer.echo(f"slack       {number(verdict.slack)}")
    typer.echo(f"tightness   {number(verdict.tightness)}")
