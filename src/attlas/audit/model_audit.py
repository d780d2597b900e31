r"""The result of an audit: tables per head and layer, bounds, findings, and how each is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from markupsafe import Markup

from attlas.audit.decision import Decision
from attlas.audit.finding import Finding
from attlas.audit.quantity import EvidenceLevel
from attlas.display.tables import table

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "attlas/audit/1"

NOT_CLAIMED = (
    "that a certificate of one head bounds what the whole network does: residual connections, "
    "norms and feedforward units stand between heads",
    "that a head is useless because the loss of this batch does not need it",
    "that a statistic of one head causes another: only ablations were interventions",
    "that numbers of this batch hold for other texts beyond the stated intervals",
)
"""The fourth list of an audit's end."""

CAUTION = "caution"
"""The fact that is a sentence on why actions may not be trusted; absent where there is none."""


@dataclass(frozen=True)
class ModelAudit:
    """An audit of one model.

    Attributes:
        model: facts of the model by name: architecture, sizes, parameters.
        level: "weights", "data" or "deep".
        heads: variables [layer, head], described by their attributes.
        depths: variables [depth], from the embedding to what leaves the last layer; without
            variables at level weights.
        bounds: rows of the table of generalisation bounds, each by name of its columns.
        findings: at most five, what has the largest consequence first, each with what to do and
            its tested effect.
        further: the findings behind these.
        decisions: every action that was tried, with its numbers; made at level deep.
        facts: further numbers of the whole model, and texts that they need: a unit, a name.
        notes: what a reader should know first.
        curves: one row per checkpoint of a folder, see `curve_row`.
        protocol: how level data was made, see `AuditedData`; empty at level weights.
    """

    model: Mapping[str, Any]
    level: str
    heads: xr.Dataset
    depths: xr.Dataset
    bounds: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    further: tuple[Finding, ...] = ()
    decisions: tuple[Decision, ...] = ()
    facts: Mapping[str, int | float | str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    curves: tuple[Mapping[str, int | float], ...] = ()
    protocol: Mapping[str, int | float | str | list[int]] = field(default_factory=dict)

    def to_pandas(self) -> "pd.DataFrame":
        """One row per head, indexed by layer and head."""
        return self.heads.to_dataframe()

    def evidence_levels(self) -> dict[str, list[str]]:
        """Titles of what is proved, checked on instances and heuristic; and what is not claimed.

        Quantities that this model or batch gives no number of are in no list.
        """
        lists: dict[str, list[str]] = {level.value: [] for level in EvidenceLevel}
        for data in (self.heads, self.depths):
            for variable in data.data_vars.values():
                if "standing" in variable.attrs and not np.isnan(variable.values).all():
                    lists[variable.attrs["standing"]].append(variable.attrs["title"])
        return {**lists, "not claimed": list(NOT_CLAIMED)}

    def to_json(self) -> dict[str, Any]:
        """The audit as plain data, by the published schema "audit"; what is not finite is null."""
        described = {
            name: {key: str(text) for key, text in variable.attrs.items()}
            for data in (self.heads, self.depths)
            for name, variable in data.data_vars.items()
        }
        return {
            "schema": SCHEMA,
            "model": dict(self.model),
            "level": self.level,
            "notes": list(self.notes),
            "protocol": dict(self.protocol),
            "quantities": described,
            "heads": _rows(self.heads, ("layer", "head")),
            "depths": _rows(self.depths, ("depth",)),
            "bounds": [{name: _plain(cell) for name, cell in row.items()} for row in self.bounds],
            "curves": [{name: _plain(cell) for name, cell in row.items()} for row in self.curves],
            "findings": [finding.to_json() for finding in self.findings],
            "further": [finding.to_json() for finding in self.further],
            "decisions": [decision.to_json() for decision in self.decisions],
            "facts": {name: _plain(value) for name, value in self.facts.items()},
            "standings": self.evidence_levels(),
        }

    def _repr_html_(self) -> str:
        """The findings and the first quantities, for notebooks."""
        facts = table([], list(self.model.items()), f"Audit at level {self.level}")
        findings = table(
            ["finding", "what to do", "tested effect"],
            [[finding.sentence, finding.action, finding.effect] for finding in self.findings],
        )
        return str(Markup("{}{}").format(facts, findings if self.findings else ""))


def _rows(data: xr.Dataset, dims: tuple[str, ...]) -> list[dict[str, Any]]:
    """One object per entry of the axes."""
    if not data.data_vars:
        return []
    shape = tuple(data.sizes[dim] for dim in dims)
    return [
        {
            **dict(zip(dims, map(int, place), strict=True)),
            **{str(name): _plain(array.values[place]) for name, array in data.data_vars.items()},
        }
        for place in np.ndindex(*shape)
    ]


def _plain(value: Any) -> Any:
    """A value that JSON can hold; numbers that are not finite are null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
