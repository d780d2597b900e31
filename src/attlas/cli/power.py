"""`attlas power`: which wrong constants the check of a claim would notice."""

import os
from typing import Annotated

import typer

from attlas.cli.machine import require_machine


def power(
    name: Annotated[str, typer.Argument(metavar="CLAIM")],
    factors: Annotated[
        list[float] | None,
        typer.Option("--factor", metavar="C", help="A wrong factor; repeatable. [1.01 to 1e6]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")] = 0,
    evaluations: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Evaluations of the attack; 0 for none."),
    ] = None,
) -> None:
    """Sweep wrong constants: which of them would the check of a claim detect?"""
    require_machine()  # before JAX is imported
    from attlas._jax.processes import checker_variables

    os.environ.update(checker_variables(1))
    from attlas.cli.tables import say, show_table
    from attlas.display.prose import plain
    from attlas.verify.power import FACTORS
    from attlas.verify.power import power as sweep
    from attlas.verify.registry import one_claim

    claim = one_claim(name)
    found = sweep(claim, factors=factors or FACTORS, seed=seed, evaluations=evaluations)
    say(f"claim  {claim.name} ({plain(claim.locator)})")
    show_table(found.headings(), found.rows())
    say(
        "A column is a statement too strong by this factor. drawn: the drawn instances refute it; "
        "attack: only the end points of an attack do; passes: neither does."
    )
    for quantity, limit in found.exponents.items():
        change = "no change is detected" if limit is None else f"detects changes from {limit:.3g}"
        say(f"exponent of {quantity}: {change}")
