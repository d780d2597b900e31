"""A table of bounds on one model: what an entry holds, and how the table is shown."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from attlas.core.errors import extra_needed
from attlas.display.numbers import plain_number
from attlas.display.tables import table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Entry:
    """One bound.

    Attributes:
        rademacher: bound on the empirical Rademacher complexity of the outputs (or losses) of the
            class at the norms of the weights.
        gap: bound on true minus empirical risk, complexity + confidence + union.
        trivial: upper bound on any gap, the range of the loss.
        is_bound: false where a constant of the source is unknown and was set to 1.
        log10_samples: log10 of the samples at which the complexity of a deep class falls below its
            trivial value; NaN for other rows.
        complexity: 2 L R, the first term of the gap.
        confidence: 3 c sqrt(ln(2 / delta) / (2 m)), the second.
        union: what it costs that the norms were measured after training, the third; 0 for norms
            fixed in advance, and for a formula that is no bound.
        union_cost: the logarithm of the union bound, in nats.
        dominant: the largest term of the gap, and the part of the network with the largest share
            in the complexity.
        search: finds `samples_until_nonvacuous`.
        story: from that number to `reason`.
    """

    name: str
    rademacher: float
    gap: float
    trivial: float
    is_bound: bool
    constants: str
    log10_samples: float
    complexity: float
    confidence: float
    union: float
    union_cost: float
    dominant: str
    search: Callable[[], float] = field(repr=False, compare=False)
    story: Callable[[float], str] = field(repr=False, compare=False)

    @property
    def vacuous(self) -> bool:
        """Whether the gap is not below the range of the loss."""
        return not self.gap < self.trivial

    @property
    def samples_until_nonvacuous(self) -> float:
        """Least m with a gap below `trivial` and a complexity below that of the largest output.

        Infinite if there is none up to 1e250, NaN for a formula that is no bound. The first access
        searches for all entries of the table, which takes longer than the table itself.
        """
        return self.search()

    @property
    def reason(self) -> str:
        """Where the number comes from, what it is made of and what would have to change."""
        return self.story(self.samples_until_nonvacuous)


class Comparison(NamedTuple):
    """The entries in order, and what they share.

    Attributes:
        m: samples.
        delta: probability that some entry fails.
        B_x: largest Euclidean norm of a token used.
        true_gap: held-out less training risk; NaN without both.
        shares: of delta, by name.
        about: the function that the norm-based entries are about, in words.
    """

    entries: tuple[Entry, ...]
    m: int
    delta: float
    B_x: float
    true_gap: float = math.nan
    shares: tuple[tuple[str, float], ...] = ()
    about: str = ""

    @property
    def best(self) -> Entry:
        """The smallest of the bounds whose constants are all known, a non-vacuous one if any is."""
        bounds = (entry for entry in self.entries if entry.is_bound)
        return min(bounds, key=lambda candidate: (candidate.vacuous, candidate.gap))

    @property
    def best_gap(self) -> float:
        """The gap of the best, or the range of the loss where that is smaller."""
        return min(self.best.gap, self.best.trivial)

    def to_pandas(self) -> "pd.DataFrame":
        """The table with one row per bound, by name; searches for the samples, as `Entry` says."""
        with extra_needed("the table of bounds"):
            import pandas as pd  # a quarter of a second that the bounds themselves do not need

        numbers = [part.name for part in fields(Entry) if part.compare]
        names = [*numbers, "vacuous", "samples_until_nonvacuous", "reason"]
        rows = [{name: getattr(entry, name) for name in names} for entry in self.entries]
        return pd.DataFrame(rows).set_index("name")

    def __repr__(self) -> str:
        rows = [(e.name, plain_number(e.gap), _standing(e, self.best)) for e in self.entries]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        lines = (f"{n:{widths[0]}}  {gap:>{widths[1]}}  {said}" for n, gap, said in rows)
        return "\n".join([self._caption("m", "delta"), *lines])

    def _repr_html_(self) -> str:
        heads = ("bound", "gap at most", "samples until non-vacuous", "", "largest term")
        rows = (
            (e.name, e.gap, e.samples_until_nonvacuous, _standing(e, self.best), e.dominant)
            for e in self.entries
        )
        return table(heads, rows, self._caption("$m$", r"$\delta$"))

    def _caption(self, m: str, delta: str) -> str:
        text = f"Bounds on the generalisation gap, {m} = {self.m}, {delta} = {self.delta:g}"
        if len(self.shares) > 1:
            text += " = " + " + ".join(f"{share:g} ({name})" for name, share in self.shares)
        if math.isfinite(self.true_gap):
            text += f", held-out less training risk {plain_number(self.true_gap)}"
        return f"{text}; norm-based ones are about {self.about}" if self.about else text


def _standing(entry: Entry, best: Entry) -> str:
    if not entry.is_bound:
        return "no bound: a constant is unknown"
    smallest = ", the smallest" if entry is best else ""
    return ("vacuous" if entry.vacuous else "non-vacuous") + smallest
