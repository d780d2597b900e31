"""`attlas check`: run claims and their controls."""

import datetime
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.check_options import (
    Badge,
    Challenge,
    Forget,
    Fresh,
    Insecure,
    Instances,
    Json,
    JsonSchema,
    Junit,
    Latex,
    Markdown,
    Names,
    On,
    Seeds,
)
from attlas.cli.session import EFFORT, require_machine, session_of

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.verdict import CheckReport, Witness
    from attlas.cli.check_files import CheckFiles
    from attlas.experiments.store import Store
    from attlas.experiments.unchanged import CheckInputs

    Ages = Mapping[str, datetime.timedelta]
    """The ages of the verdicts that are unchanged, by claim."""

COLUMNS = (
    "claim",
    "provenance",
    "verdict",
    "strength",
    "would refute",
    "tightness",
    "slack",
    "controls",
    "challenge",
    "kind",
    "locator",
)
"""The most important ones first: a narrow terminal has no room for the last."""
EXIT_DEFECTS = 1


def check(
    context: typer.Context,
    names: Names = None,
    instances: Instances = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")] = 0,
    seeds: Seeds = 1,
    challenge: Challenge = None,
    effort: Annotated[float, EFFORT] = 1.0,
    forget: Forget = False,
    fresh: Fresh = False,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 2,
    on: On = "local",
    insecure: Insecure = False,
    json_file: Json = None,
    json_schema: JsonSchema = False,
    latex_file: Latex = None,
    markdown_file: Markdown = None,
    junit_file: Junit = None,
    badge_file: Badge = None,
) -> None:
    """Run claims and their controls; exit 1 if a verdict differs from its expectation.

    A verdict of which nothing has changed since it was computed is shown and not computed again.
    """
    if json_schema:
        _show_schema()
        return
    require_machine()  # this and the next before JAX is imported
    _set_variables(on, processes)
    from attlas.experiments.store import Store
    from attlas.experiments.verdicts import FOLDER
    from attlas.verify.check_many import alpha_of

    claims = _named(names or ())
    files = _requested(json_file, latex_file, markdown_file, junit_file, badge_file)
    store = Store(session_of(context).results)
    store.prepare(FOLDER)
    options = {
        "count": instances,
        "seed": seed,
        "seeds": seeds,
        "challenge": challenge,
        "effort": effort,
        "stored": _stored(store, claims, forget),
        "alpha": alpha_of(len(claims)),
    }
    inputs = _inputs(claims, options, on)
    reports, ages = _unchanged(store, claims, None if fresh else inputs)
    changed = [claim for claim in claims if claim.name not in reports]
    checked = _checked(changed, options, on, processes, insecure)
    reports |= _stored_reports(store, changed, checked, seeds, inputs)
    _show_all(claims, reports, ages)
    if files is not None:
        files.write(claims, reports, store)
    if any(report.defects for report in chain(*reports.values())):
        raise typer.Exit(EXIT_DEFECTS)


def _show_schema() -> None:
    import json

    from attlas.experiments.schema import schema

    typer.echo(json.dumps(schema("check"), indent=1))


def _named(names: Sequence[str]) -> "Sequence[Claim]":
    """The claims that arguments name, with a line where there is none."""
    from attlas.projects.read_files import watched_reads
    from attlas.verify.registry import find_claims

    with watched_reads():  # of this process, which checks the claims of one file itself
        claims = find_claims(names)
    if not claims:
        typer.echo("no claim yet: `attlas coverage` lists the statements that are to do", err=True)
    return claims


def _inputs(claims: "Sequence[Claim]", options: dict, on: str) -> "CheckInputs | None":
    """What verdicts at one seed follow from on this machine; None for others."""
    if on != "local" or options["seeds"] > 1:
        return None
    from attlas.experiments.unchanged import check_inputs

    settings = (options[name] for name in ("count", "seed", "challenge", "effort", "stored"))
    return check_inputs(claims, *settings)


def _unchanged(
    store: "Store", claims: "Sequence[Claim]", inputs: "CheckInputs | None"
) -> "tuple[dict[str, list[CheckReport]], Ages]":
    """The verdicts of which nothing has changed, and how old each is; none without inputs."""
    if inputs is None:
        return {}, {}
    from attlas.experiments.unchanged import unchanged_reports

    stored = unchanged_reports(store, claims, inputs)
    now = datetime.datetime.now(datetime.UTC)
    ages = {name: now - finished for name, (_, finished) in stored.items()}
    with_proof = _proofs(store, claims)
    return {name: [with_proof(report)] for name, (report, _) in stored.items()}, ages


def _stored_reports(
    store: "Store",
    claims: "Sequence[Claim]",
    checked: "Iterator[tuple[CheckReport, dict | None]]",
    seeds: int,
    inputs: "CheckInputs | None",
) -> "dict[str, list[CheckReport]]":
    """The reports of each claim as they came, the first of which is stored as its verdict."""
    from attlas.display.terminal import progress_bar
    from attlas.experiments.verdicts import write_report

    reports: dict[str, list[CheckReport]] = {claim.name: [] for claim in claims}
    by_name = {claim.name: claim for claim in claims}
    file, is_same = "", False
    with_proof = _proofs(store, claims)
    with progress_bar("claims") as step:
        for plain_report, worker_environment in checked:
            report = with_proof(plain_report)
            claim = by_name[report.claim]
            if claim.place[0] != file:  # the reports of one file come together
                file, is_same = claim.place[0], inputs is not None and inputs.package_is_same()
            if not reports[report.claim]:
                written = inputs.stored_with(claim, report) if inputs and is_same else None
                write_report(store, report, claim, worker_environment, written)
            _keep(store, report)
            reports[report.claim].append(report)
            step(seeds * len(claims))
    return reports


def _proofs(store: "Store", claims: "Sequence[Claim]") -> "Callable[[CheckReport], CheckReport]":
    """What adds the stored proof of its claim to a report."""
    from attlas.experiments.store import published_store

    papers = {claim.paper for claim in claims}
    folders = [each.root / "proofs" for each in (store, published_store()) if each is not None]
    if not any((folder / paper).is_dir() for folder in folders for paper in papers):
        return lambda report: report
    from attlas.experiments.proofs import read_proofs, with_proof

    return partial(with_proof, proofs=read_proofs(store, [claim.name for claim in claims]))


def _requested(*paths: Path | None) -> "CheckFiles | None":
    """The files that a check is to write, each of which can be written; None without any."""
    if not any(paths):
        return None
    from attlas.cli.check_files import CheckFiles

    files = CheckFiles(*paths)
    files.probe()
    return files


def _set_variables(on: str, processes: int) -> None:
    """Let this process be as a worker is, so that it can check the claims of one file itself."""
    from attlas._jax.processes import checker_variables

    if on == "local":
        os.environ.update(checker_variables(processes))


def _checked(
    claims: "Sequence[Claim]", options: dict, on: str, processes: int, insecure: bool
) -> "Iterator[tuple[CheckReport, dict | None]]":
    """Reports as they come, each with the environment of its worker on a cluster."""
    if on == "local":
        from attlas.verify.check_many import check_all

        yield from ((report, None) for report in check_all(claims, processes=processes, **options))
        return
    from attlas.experiments.dask_claims import check_on_dask

    yield from check_on_dask(claims, on=on, workers=processes, insecure=insecure, **options)


def _stored(store: "Store", claims: "Sequence[Claim]", forget: bool) -> "dict[str, Witness]":
    """The stored instances of earlier searches, by claim; with `forget` they are deleted first."""
    from attlas.experiments.store import WITNESSES

    if not forget and not (store.root / WITNESSES).is_dir():
        return {}
    from attlas.experiments.witness import forget_witness, stored_witnesses

    if forget:
        gone = sum(forget_witness(store, claim.name) for claim in claims)
        typer.echo(f"{gone} stored witnesses deleted")
    witnesses = stored_witnesses(store, [claim.name for claim in claims])
    for note in store.notes:
        typer.echo(f"attlas: {note}", err=True)
    return {name: dict(witness.arrays) for name, witness in witnesses.items()}


def _keep(store: "Store", report: "CheckReport") -> None:
    """Store a counterexample, which every later check evaluates first."""
    if report.challenge is not None and report.challenge.violated:
        from attlas.experiments.witness import keep_witness

        keep_witness(store, report.claim, report.challenge, report.shrunk)


def _show_all(
    claims: "Sequence[Claim]", reports: "Mapping[str, Sequence[CheckReport]]", ages: "Ages"
) -> None:
    if all(len(group) == 1 for group in reports.values()):
        _show(claims, {name: report for name, (report,) in reports.items()}, ages)
    else:
        from attlas.cli.check_seeds import show_seeds

        show_seeds(claims, reports)


def _show(claims: "Sequence[Claim]", reports: "dict[str, CheckReport]", ages: "Ages") -> None:
    from attlas.claims.claim import provenance_of, wording_sentence
    from attlas.claims.verdict import FARTHEST, by_provenance
    from attlas.display.terminal import number, plain, say, show_table

    rows = [_row(claim, reports[claim.name]) for claim in claims]
    always = ("provenance", "verdict", "strength")
    show_table(COLUMNS, rows, always=always, elsewhere="`--json FILE`")
    for claim in claims:
        report = reports[claim.name]
        for defect in report.defects:
            say(f"{claim.name}: {plain(defect)}")
        if report.shrunk is not None:
            for line in report.shrunk.lines():
                say(f"  {line}")
        if report.remote:
            say(
                f"{claim.name}: no control is nearer than a factor of {FARTHEST:g}: the nearest "
                f"exceeds its bound {number(report.nearest)} times"
            )
    if wording := wording_sentence(map(provenance_of, claims)):
        say(wording)
    pairs = ((provenance_of(claim), reports[claim.name]) for claim in claims)
    for provenance, group in by_provenance(pairs).items():
        for text in _counted(group, ages):
            say(f"{provenance}: {text}")
    if ages:
        say(_unchanged_sentence(ages, len(claims) - len(ages)))


def _unchanged_sentence(ages: "Ages", computed: int) -> str:
    """How many verdicts were not computed again, and how old they are."""
    from attlas.display.terminal import counted
    from attlas.experiments.unchanged import age_text

    span = " to ".join(
        dict.fromkeys(age_text(age) for age in (min(ages.values()), max(ages.values())))
    )
    return (
        f"{counted(len(ages), 'verdict')} unchanged, computed {span} ago; {computed} computed now; "
        "--fresh computes all"
    )


def _counted(reports: "Sequence[CheckReport]", ages: "Ages") -> Iterator[str]:
    """The numbers of the claims of one provenance."""
    from attlas.claims.verdict import strengths
    from attlas.display.terminal import counted

    supported = [report for report in reports if report.outcome == "SUPPORTED"]
    if len(supported) > 1:
        yield f"{len(supported)} supported claims, {strengths(supported)}; see `attlas power CLAIM`"
    defective = sum(bool(report.defects) for report in reports)
    busy = sum(report.seconds for report in reports if report.claim not in ages)
    yield (
        f"{counted(len(reports), 'claim')} checked, {len(reports) - defective} as expected, "
        f"{defective} unexpected; {busy:.1f} s by the clock in all processes"
    )


def _row(claim: "Claim", report: "CheckReport") -> tuple[str, ...]:
    from attlas.claims.claim import provenance_text
    from attlas.display.terminal import number, plain

    good = sum(control.as_expected for control in report.controls)
    search = report.challenge
    if search is None:
        attacked = "-"
    else:
        attacked = "violated" if search.violated else f"best ratio {number(search.ratio)}"
        if search.verdict.confirmed is not None and not search.violated:
            attacked = "undecided in digits"
    return (
        report.claim,
        provenance_text(claim),
        _outcome(report),
        report.strength or "-",
        _detected(report),
        number(report.verdict.tightness),
        number(report.verdict.slack),
        f"{good}/{len(report.controls)}",
        attacked,
        claim.kind,
        plain(claim.locator),
    )


def _outcome(report: "CheckReport") -> str:
    """The outcome, which is no failure where it is the expected one."""
    outcome = report.outcome
    return f"{outcome} (expected)" if outcome is report.expect != "SUPPORTED" else str(outcome)


def _detected(report: "CheckReport") -> str:
    """How much smaller a right side must be to be refuted, in the worst component."""
    from attlas.claims.verdict import limits_of, passing_factor
    from attlas.display.terminal import number

    factor = passing_factor(limits_of(report))
    if factor is None:
        return "-"
    if factor == float("inf"):
        return "no factor"
    text = number(factor)
    return "a thousandth smaller" if text == "1" else f"{text} times smaller"
