"""The margins, bounds and required sizes of an audit, each in one order for a picture."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from liu2021analyzing.library.audit.head_audit import ASKED, COMPARED
from liu2021analyzing.library.audit.head_rows import HeadRow, theorem_2_applies

BALLS = ("1,1", "1,inf", "2,1")
PAPERS = ("truth", "julistiono2024", "deora2023", "gu2024", "trauger2023", "liu2021")


class RankedBounds(NamedTuple):
    """Rows of three comparisons; a `remark` says why a number is no bound.

    Attributes:
        margins: of W at norm 1, and of all parameters at norm sqrt(2).
        gaps: the true gaps, then every bound on one.
        required_sizes: log10 of the samples, heads or units that the theorems require.
    """

    margins: list[HeadRow]
    gaps: list[HeadRow]
    required_sizes: list[HeadRow]


def ranked_bounds(a: Mapping[str, np.ndarray]) -> RankedBounds:
    """Order an audit's numbers at the last record.

    Args:
        a: arrays of `audit_heads`.

    Examples:
        >>> RankedBounds([], [], []).gaps
        []
    """
    return RankedBounds(_margins(a), _gaps(a), _required_sizes(a))


def ranked_dataset(a: Mapping[str, np.ndarray]) -> xr.Dataset:
    """The rows of `ranked_bounds` as arrays with axes for the paper, the row and the head.

    Args:
        a: arrays of `audit_heads`.

    Returns:
        `margins` along `margin`, `gaps` along `bound`, `required_sizes` along `required`, each
        NaN but at the paper of the row; and `applies`, whether a bound's conditions hold.
    """
    ranked = ranked_bounds(a)
    return xr.Dataset(
        {
            "margins": _placed(ranked.margins, "margin"),
            "gaps": _placed(ranked.gaps, "bound"),
            "required_sizes": _placed(ranked.required_sizes, "required"),
            "applies": ("bound", [not row.remark for row in ranked.gaps]),
        }
    )


def _placed(rows: list[HeadRow], axis: str) -> xr.DataArray:
    values = np.full((len(PAPERS), len(rows), len(rows[0].values)), np.nan)
    for k, row in enumerate(rows):
        values[PAPERS.index(row.paper), k] = row.values
    labels = {"paper": list(PAPERS), axis: [row.quantity for row in rows]}
    return xr.DataArray(values, labels, ("paper", axis, "member"))


def _margins(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    return [
        HeadRow("julistiono2024", "W, selected tokens", a["selection"][:, -1], ""),
        HeadRow("julistiono2024", "attention SVM, selected tokens", a["svm_margin"], ""),
        HeadRow("julistiono2024", "attention SVM, best tokens", a["svm_optimal_margin"], ""),
        HeadRow("deora2023", "head with W = 0", a["margin_uniform"], ""),
        HeadRow("deora2023", "NTK at the start", a["margin_ntk"], ""),
        HeadRow("deora2023", "global margin, found", a["margin_best"], ""),
        HeadRow("deora2023", "global margin, ceiling", a["margin_ceiling"], ""),
        HeadRow("deora2023", "linear on all tokens", a["margin_flat"], ""),
    ]


def _gaps(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    compared: dict[str, np.ndarray] = dict(zip(COMPARED, a["gap"].T, strict=True))
    named = [(f"Theorem 4.1, ({ball})", f"{ball} sharp") for ball in BALLS]
    named += [("cover with log T", "log T"), ("cover with log m", "log m"),
              ("parameter counting", "parameters")]  # fmt: skip
    rows = [
        HeadRow("truth", f"true gap, {text}", a[name][:, -1, 1] - a[name][:, -1, 0], "")
        for name, text in (("error", "error"), ("ramp", "ramp risk"), ("risk", "logistic risk"))
    ]
    rows += [HeadRow("trauger2023", text, compared[name], "") for text, name in named]
    rows.append(HeadRow("deora2023", "measured stability, Lemma 3", a["stability_gap"][:, -1], ""))
    for version, text in (("", "printed"), ("_sharp", "sharp")):
        holds = theorem_2_applies(a, version)[:, -1].all()
        values = a[f"bound_gap{version}"][:, -1]
        remark = "" if holds else "conditions fail"
        rows.append(HeadRow("deora2023", f"Theorem 2, {text}", values, remark))
    return rows


def _required_sizes(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    needed: dict[str, np.ndarray] = dict(zip(COMPARED, np.log10(a["needed"]).T, strict=True))
    named = [(name, name) for name in ("parameters", "log T", "log m")]
    named += [(f"({b}) {v}", f"{b} {v}") for v in ("sharp", "corrected") for b in BALLS]
    rows = [HeadRow("trauger2023", f"samples: {text}", needed[name], "") for text, name in named]
    sizes = zip(ASKED, np.log10(a["asked"]).T, strict=True)
    rows += [HeadRow("liu2021", f"samples: {name}", values, "") for name, values in sizes]
    heads = (("sharp", "_sharp"), ("printed", ""))
    rows += [
        HeadRow("deora2023", f"heads: Theorem 2, {name}", a[f"bound_stability_heads{v}"][:, -1], "")
        for name, v in heads
    ]
    units = zip(("printed", "corrected"), a["width"].T, strict=True)
    rows += [HeadRow("gu2024", f"units: Theorem 4.2, {name}", values, "") for name, values in units]
    return rows
