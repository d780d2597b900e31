"""`attlas prove`: proofs of claims, stored beside their verdicts."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.check import EXIT_DEFECTS
from attlas.cli.session import require_machine, session_of

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.proof import Proof
    from attlas.experiments.store import Store


def prove(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM, PAPER or PLACE]...",
            help="By default the current project, or everything.",
        ),
    ] = None,
    recheck: Annotated[
        bool,
        typer.Option("--recheck", help="Check the stored proofs again, on boxes and in digits."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random points.")] = 0,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Processor seconds for each search of a method. "
            "[default: 15 for sums of squares, 5 for a box, 20 for a finite set, 90 for an "
            "identity along its draws]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Prove identities, inequalities, worst cases of methods, stored witnesses.

    Identities by exact algebra; inequalities by sums of squares for all numbers, distributions,
    intervals, definite matrices or unit vectors, or of few numbers on a box by intervals;
    statements over a finite set (whole numbers, orders, a table) at each of its instances; bounds
    on the exact worst case of a first-order method (at.worst_case: performance estimation) by
    multipliers that are added up in rationals; existences and errata by their stored witness. A
    line for each other claim says why it is not proved.
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{seconds:g} is no positive number", param_hint="--seconds")
    require_machine()  # before JAX is imported
    from attlas._jax.processes import checker_variables

    os.environ.update(checker_variables(1))
    from attlas.experiments.proofs import FOLDER
    from attlas.experiments.store import Store
    from attlas.verify.registry import find_claims

    claims = find_claims(names or ())
    store = Store(session_of(context).results)
    if recheck:
        _recheck(store, claims, seed)
        return
    store.prepare(FOLDER)
    _prove(store, claims, seed, seconds)


def _prove(
    store: "Store", claims: "list[Claim] | tuple[Claim, ...]", seed: int, seconds: float | None
) -> None:
    from collections import Counter

    from attlas.claims.proof import Proof
    from attlas.display.terminal import say
    from attlas.experiments.proofs import forget_proof, write_proof
    from attlas.verify.proofs.prover import prove as proof_of

    methods: Counter[str] = Counter()
    trusted: dict[str, str] = {}
    for claim in claims:
        result = proof_of(claim, seed=seed, seconds=seconds)
        if isinstance(result, Proof):
            methods[result.method] += 1
            trusted[result.method] = result.trusted
            write_proof(store, claim.name, result)
            say(f"{claim.name}: {result.sentence()}")
        else:
            forget_proof(store, claim.name)
            say(f"{claim.name}: not proved: {result}")
    for method, base in sorted(trusted.items()):
        say(f"a proof by {method} trusts {base}")
    counted = ", ".join(f"{n} by {method}" for method, n in sorted(methods.items()))
    say(f"{methods.total()} of {len(claims)} proved{': ' if counted else ''}{counted}")


def _recheck(store: "Store", claims: "list[Claim] | tuple[Claim, ...]", seed: int) -> None:
    from attlas.display.terminal import say
    from attlas.experiments.proofs import current_proof, read_proofs

    proofs = read_proofs(store, [claim.name for claim in claims])
    wrong = 0
    for claim in claims:
        if claim.name in proofs:
            proof = current_proof(claim, proofs[claim.name])
            why = _why_not(claim, proof, seed)
            wrong += bool(why)
            say(f"{claim.name}: {why or (proof and proof.sentence())}")
    for note in store.notes:
        typer.echo(f"attlas: {note}", err=True)
    say(f"{len(proofs) - wrong} of {len(proofs)} proofs confirmed")
    if wrong:
        raise typer.Exit(EXIT_DEFECTS)


def _why_not(claim: "Claim", proof: "Proof | None", seed: int) -> str:
    from attlas.verify.proofs.recheck import recheck

    if proof is None:
        return "the proof is stale: the claim's sources have changed, prove it again"
    why = recheck(claim, proof, seed=seed)
    return f"the proof is not confirmed: {why}" if why else ""
