"""`attlas power`: which wrong constants the check of a claim would notice."""

import os
from typing import Annotated

import typer

from attlas.cli.machine import require_machine


def power(
    name: Annotated[str, typer.Argument(metavar="CLAIM")],
    factors: Annotated[
        list[float] | None,
        typer.Option("--factor", metavar="C", help="A wrong constant; repeat it. 1.01 to 1e6."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")] = 0,
    evaluations: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Of the attack; 0 for none."),
    ] = None,
) -> None:
    """Sweep wrong constants: which of them would the check of a claim notice?"""
    require_machine()  # before JAX is imported
    from attlas.core.processes import checker_variables

    os.environ.update(checker_variables(1))
    from attlas.cli.tables import show_table
    from attlas.core.prose import plain
    from attlas.verify.power import FACTORS
    from attlas.verify.power import power as sweep
    from attlas.verify.registry import one_claim

    claim = one_claim(name)
    found = sweep(claim, factors=factors or FACTORS, seed=seed, evaluations=evaluations)
    typer.echo(f"claim  {claim.name} ({plain(claim.locator)})")
    heads = ("component", *(f"{factor:g}" for factor in found.factors), "smallest noticed")
    show_table(heads, found.rows())
    typer.echo("drawn: the drawn instances notice a statement too strong by this factor; ")
    typer.echo("attack: only the end points of an attack do; passes: neither does")
    for quantity, limit in found.exponents.items():
        told = "no change is noticed" if limit is None else f"noticed from {limit:.3g}"
        typer.echo(f"exponent of {quantity}: {told}")
