"""`attlas challenge`: search for a counterexample, or evaluate a stored one again."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.session import EFFORT, EXIT_INTERRUPTED, require_machine, session_of

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.verdict import ChallengeReport, Verdict
    from attlas.experiments.store import Store

EXIT_BROKEN = 1


def challenge(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[CLAIM or PLACE]")] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="Stop after this time."),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop after N evaluations; reproducible by seed."),
    ] = None,
    effort: Annotated[float, EFFORT] = 1.0,
    method: Annotated[
        str,
        typer.Option(
            help="moves, ascent, evolution, covariance, extremes, coincidences, sizes, draws, "
            "auto (all)."
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first starting points.")] = 0,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Re-evaluate a stored instance.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write what was found as JSON too."),
    ] = None,
) -> None:
    """Search for a counterexample; exit 1 if a claim that should hold has one."""
    require_machine()  # before JAX is imported
    from attlas._jax.processes import checker_variables

    # Before JAX is imported: most of a search's time is compilation.
    os.environ.update(checker_variables(1))
    if json_file is not None:
        _probe(json_file, replay)
    if replay is not None:
        claim, verdict = _replay(name, replay)
    else:
        budget = {"evaluations": evaluations, "seconds": seconds, "effort": effort}
        options = {**budget, "method": method, "seed": seed}
        claim, verdict = _search(context, name, options, json_file)
    if verdict.outcome == "VIOLATED" and claim.expect.outcome == "SUPPORTED":
        raise typer.Exit(EXIT_BROKEN)


def _probe(json_file: Path, replay: Path | None) -> None:
    """Refuse `--json` before anything is computed, where it cannot be written or has no search."""
    from attlas.core.errors import UserError
    from attlas.experiments.text_file import probe_text_file

    if replay is not None:
        raise UserError("--json writes what a search finds: leave out --replay, or --json")
    probe_text_file(json_file, "--json")


def _search(
    context: typer.Context, name: str | None, options: dict, json_file: Path | None
) -> "tuple[Claim, Verdict]":
    from attlas.core.errors import UserError
    from attlas.display.terminal import number, plain, show_fact
    from attlas.experiments.challenge_document import challenge_document
    from attlas.experiments.store import WITNESSES, Store
    from attlas.experiments.text_file import write_json_file
    from attlas.experiments.witness import keep_witness, witness_file
    from attlas.verify.challenge import challenge as search
    from attlas.verify.registry import one_claim
    from attlas.verify.searchable import why_not_moved
    from attlas.verify.shrink.shrinking import shrunk_of

    if name is None:
        raise UserError("challenge needs a CLAIM, or --replay FILE: see `attlas list claims`")
    claim = one_claim(name)
    store = Store(session_of(context).results)
    store.prepare(WITNESSES)
    before = _stored_best(claim, store)

    def keep(report: "ChallengeReport") -> None:
        # However the search ends later, the best instance is on disk.
        if report.violated or before is None or (report.ratio or 0) > (before.tightness or 0):
            keep_witness(store, claim.name, report)

    report = search(
        claim, keep=None if before and before.outcome == "VIOLATED" else keep, **options
    )
    show_fact("claim", f"{claim.name} ({plain(claim.locator)})")
    show_fact("best ratio", f"{number(report.ratio)} of left to right side, by {report.method}")
    if before is not None:
        show_fact("stored", f"{before.outcome}, ratio {number(before.tightness)}")
    show_fact("effort", f"{report.evaluations} evaluations, seed {options['seed']}")
    if reason := why_not_moved(claim):
        show_fact("fresh draws", reason)
    _show(claim, report.verdict)
    if report.certified:
        show_fact("proof", report.certified)
    shrunk = shrunk_of(claim, report)
    if shrunk is not None:
        # The simpler instance is stored, for later checks and for whoever replays the file.
        keep_witness(store, claim.name, report, shrunk)
        for line in shrunk.lines():
            show_fact(line[:11].rstrip(), line[11:])
    if json_file is not None:
        document = challenge_document(claim, report, options["seed"], shrunk)
        write_json_file(json_file, document, "--json")
    path = witness_file(store, claim.name)
    if path.is_file():
        show_fact("witness", str(path))
    if report.stopped:
        typer.echo(f"{report.stopped}: the best instance so far is saved", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    return claim, report.verdict


def _stored_best(claim: "Claim", store: "Store") -> "Verdict | None":
    """The verdict of the claim on the stored instance of an earlier search."""
    from attlas.experiments.witness import stored_witnesses
    from attlas.verify.challenge import replay

    stored = stored_witnesses(store, [claim.name])
    if claim.name not in stored:
        return None
    try:
        return replay(claim, dict(stored[claim.name].arrays))
    except (KeyError, IndexError, TypeError, ValueError):
        # The instance is of an earlier form of the claim: the search writes a new one.
        return None


def _replay(name: str | None, file: Path) -> "tuple[Claim, Verdict]":
    from attlas.claims.shrunk_witness import witness_latex
    from attlas.core.errors import UserError
    from attlas.display.terminal import plain, show_fact
    from attlas.experiments.witness import read_witness
    from attlas.verify.challenge import replay
    from attlas.verify.registry import one_claim

    stored = read_witness(file)
    claim = one_claim(stored.claim if name is None else name)
    if claim.name != stored.claim:
        raise UserError(f"{file} is an instance of '{stored.claim}', not of '{name}'")
    try:
        verdict = replay(claim, dict(stored.arrays))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} does not fit the current form of '{claim.name}' ({type(error).__name__}): "
            "search again with `attlas challenge`"
        ) from error
    show_fact("claim", f"{claim.name} ({plain(claim.locator)})")
    _show(claim, verdict)
    if verdict.outcome == "VIOLATED":
        show_fact("instance", witness_latex(stored.arrays))
    return claim, verdict


def _show(claim: "Claim", verdict: "Verdict") -> None:
    from attlas.claims.claim import provenance_text
    from attlas.display.terminal import number, show_fact

    show_fact("provenance", provenance_text(claim))
    show_fact("verdict", f"{verdict.outcome}: {verdict.reason}")
    show_fact("slack", number(verdict.slack))
    show_fact("tightness", number(verdict.tightness))
