"""What `attlas check --seeds N` shows: which claims change with the seed, and which nearly do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.verdict import CheckReport

COLUMNS = ("claim", "provenance", "verdict", "as expected", "near a limit", "fewest instances")


def show_seeds(claims: "Sequence[Claim]", reports: "Mapping[str, Sequence[CheckReport]]") -> None:
    """A row for each claim, then a line for each thing that is unexpected or near its limit."""
    from attlas.display.terminal import counted, plain, say, show_table

    rows = [_row(claim, reports[claim.name]) for claim in claims]
    always = ("provenance", "verdict", "as expected", "near a limit")
    show_table(COLUMNS, rows, always=always, elsewhere="`--json FILE`")
    for claim in claims:
        for sentence in _sentences(reports[claim.name]):
            say(f"{claim.name}: {plain(sentence)}")
    groups = [reports[claim.name] for claim in claims]
    steady = sum(not any(report.defects for report in group) for group in groups)
    close = sum(any(report.near for report in group) for group in groups)
    busy = sum(report.seconds for group in groups for report in group)
    seeds = counted(max(map(len, groups), default=0), "seed")
    say(
        f"{counted(len(claims), 'claim')} checked at {seeds}: {steady} as expected at each, "
        f"{len(claims) - steady} not, {close} with a control or count within 5 % of its limit; "
        f"{busy:.1f} s by the clock in all processes"
    )


def _row(claim: "Claim", group: "Sequence[CheckReport]") -> tuple[str, ...]:
    from attlas.claims.claim import provenance_text

    outcomes = dict.fromkeys(report.outcome.value for report in group)
    return (
        claim.name,
        provenance_text(claim),
        ", ".join(outcomes),
        f"{sum(not report.defects for report in group)}/{len(group)}",
        str(sum(bool(report.near) for report in group)),
        str(min(report.verdict.distinct for report in group)),
    )


def _sentences(group: "Sequence[CheckReport]") -> Iterator[str]:
    """Each defect at the seeds that show it, then each sentence on a limit with its seeds."""
    for report in group:
        for defect in report.defects:
            yield f"seed {report.verdict.seed}: {defect}"
    seeds: dict[str, list[int]] = defaultdict(list)
    for report in group:
        for sentence in report.near:
            seeds[sentence].append(report.verdict.seed)
    for sentence, where in seeds.items():
        yield f"{_named(where)}: {sentence}"


def _named(seeds: Iterable[int]) -> str:
    """The seeds in words: "seed 3", "seeds 1, 2 and 5"."""
    *before, last = map(str, seeds)
    return f"seeds {', '.join(before)} and {last}" if before else f"seed {last}"
