"""`attlas power`: which wrong constants the check of a claim would detect."""

import os
from typing import Annotated

import typer

from attlas.cli.session import require_machine


def power(
    name: Annotated[str, typer.Argument(metavar="CLAIM")],
    factors: Annotated[
        list[float] | None,
        typer.Option("--factor", metavar="C", help="A wrong factor, repeatable. [1.01 to 1e6]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")] = 0,
    evaluations: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Evaluations of the attack; 0 for none."),
    ] = None,
) -> None:
    """Show which wrong constants the check of a claim would detect."""
    require_machine()  # before JAX is imported
    from attlas._jax.processes import checker_variables

    os.environ.update(checker_variables(1))
    from attlas.display.terminal import plain, say, show_table
    from attlas.verify.power import FACTORS
    from attlas.verify.power import power as sweep
    from attlas.verify.registry import one_claim

    claim = one_claim(name)
    table = sweep(claim, factors=factors or FACTORS, seed=seed, evaluations=evaluations)
    say(f"claim  {claim.name} ({plain(claim.locator)})")
    show_table(table.headings(), table.rows())
    say(
        "Each column is a statement whose right side is smaller by its factor. drawn: a sampled "
        "instance refutes it; attack: only an attack refutes it; passes: neither does."
    )
    for quantity, limit in table.exponents.items():
        change = "no change is detected" if limit is None else f"detects changes from {limit:.3g}"
        say(f"exponent of {quantity}: {change}")
