"""`attlas check`: run claims and their controls."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.session import EFFORT, PLACES, require_machine, session_of

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.verdict import CheckReport, Witness
    from attlas.cli.check_files import CheckFiles
    from attlas.experiments.store import Store

COLUMNS = (
    "claim",
    "provenance",
    "verdict",
    "strength",
    "detects from",
    "tightness",
    "slack",
    "controls",
    "challenge",
    "kind",
    "locator",
)
"""The most important ones first: a narrow terminal has no room for the last."""
EXIT_DEFECTS = 1


def _show_schema(wanted: bool) -> None:
    if wanted:
        import json

        from attlas.experiments.schema import schema

        typer.echo(json.dumps(schema("check"), indent=1))
        raise typer.Exit


On = Annotated[
    str,
    typer.Option(metavar=PLACES, help="Where the claims run."),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Allow a remote scheduler without TLS.")]
Seeds = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Check at N seeds from --seed on: what changes, what nearly does."
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the reports as JSON too.")
]
JsonSchema = Annotated[
    bool,
    typer.Option(
        "--json-schema",
        callback=_show_schema,
        is_eager=True,
        help="Show the JSON Schema of --json and exit.",
    ),
]
Latex = Annotated[
    Path | None, typer.Option("--latex", metavar="FILE", help="Write the table in LaTeX too.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the table in Markdown too.")
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write a test case per claim and control too."),
]
Badge = Annotated[
    Path | None,
    typer.Option(
        "--badge", metavar="FILE.svg|.json", help="Write a badge too: a picture or an endpoint."
    ),
]


def check(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM, PAPER or PLACE]...",
            help="A place is a file, a folder, a module or a notebook, optionally with :NAME. "
            "By default the current project, or everything.",
        ),
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Instances per claim; the claim's own by default."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")] = 0,
    seeds: Seeds = 1,
    challenge: Annotated[
        int,
        typer.Option(min=0, metavar="ROUNDS", help="Rounds of counterexample search."),
    ] = 0,
    effort: Annotated[float, EFFORT] = 1.0,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete the stored witnesses of these claims first.")
    ] = False,
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
    """Run claims and their controls; exit 1 if a verdict differs from its expectation."""
    del json_schema  # its callback has shown it
    require_machine()  # this and the next before JAX is imported
    _set_variables(on, processes)
    from attlas.experiments.store import Store
    from attlas.experiments.verdicts import FOLDER

    claims = _named(names or ())
    files = _requested(json_file, latex_file, markdown_file, junit_file, badge_file)
    store = Store(session_of(context).results)
    store.prepare(FOLDER)
    options = {
        "count": instances,
        "seed": seed,
        "seeds": seeds,
        "challenge_rounds": challenge * effort,
        "stored": _stored(store, claims, forget),
    }
    checked = _checked(claims, options, on, processes, insecure)
    reports = _stored_reports(store, claims, checked, seeds)
    _show_all(claims, reports)
    if files is not None:
        files.write(claims, reports, store)
    if any(report.defects for report in chain(*reports.values())):
        raise typer.Exit(EXIT_DEFECTS)


def _named(names: Sequence[str]) -> "Sequence[Claim]":
    """The claims that arguments name, with a line where there is none."""
    from attlas.verify.registry import find_claims

    claims = find_claims(names)
    if not claims:
        typer.echo("no claim yet: `attlas coverage` lists the statements that are to do", err=True)
    return claims


def _stored_reports(
    store: "Store",
    claims: "Sequence[Claim]",
    checked: "Iterator[tuple[CheckReport, dict | None]]",
    seeds: int,
) -> "dict[str, list[CheckReport]]":
    """The reports of each claim as they came, the first of which is stored as its verdict."""
    from attlas.display.terminal import progress_bar
    from attlas.experiments.verdicts import write_report

    reports: dict[str, list[CheckReport]] = {claim.name: [] for claim in claims}
    by_name = {claim.name: claim for claim in claims}
    with progress_bar("claims") as step:
        for report, worker_environment in checked:
            if not reports[report.claim]:
                write_report(store, report, by_name[report.claim], worker_environment)
            _keep(store, report)
            reports[report.claim].append(report)
            step(seeds * len(claims))
    return reports


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
        from attlas.verify.check import check_all

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


def _show_all(claims: "Sequence[Claim]", reports: "Mapping[str, Sequence[CheckReport]]") -> None:
    if all(len(group) == 1 for group in reports.values()):
        _show(claims, {name: report for name, (report,) in reports.items()})
    else:
        from attlas.cli.check_seeds import show_seeds

        show_seeds(claims, reports)


def _show(claims: "Sequence[Claim]", reports: "dict[str, CheckReport]") -> None:
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
        for text in _counted(group):
            say(f"{provenance}: {text}")


def _counted(reports: "Sequence[CheckReport]") -> Iterator[str]:
    """The numbers of the claims of one provenance."""
    from attlas.claims.verdict import strengths
    from attlas.display.terminal import counted

    supported = [report for report in reports if report.verdict.outcome == "SUPPORTED"]
    if len(supported) > 1:
        yield f"{len(supported)} supported claims, {strengths(supported)}; see `attlas power CLAIM`"
    defective = sum(bool(report.defects) for report in reports)
    busy = sum(report.seconds for report in reports)
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
    outcome = report.verdict.outcome
    return f"{outcome} (expected)" if outcome is report.expect != "SUPPORTED" else str(outcome)


def _detected(report: "CheckReport") -> str:
    """The smallest factor at which the check detects a too small right side, worst component."""
    from attlas.claims.verdict import limits_of, passing_factor
    from attlas.display.terminal import number

    factor = passing_factor(limits_of(report))
    if factor is None:
        return "-"
    return "never" if factor == float("inf") else f"x{number(factor)}"
