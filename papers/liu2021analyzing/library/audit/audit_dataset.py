"""The arrays of an audit as one labelled data set, and back."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from liu2021analyzing.library.audit.head_audit import ALPHAS, ASKED, COMPARED, DESCENT
from liu2021analyzing.library.audit.head_landscape import HeadLandscape
from liu2021analyzing.library.audit.head_margins import HeadMargins
from liu2021analyzing.library.audit.head_selection import HeadSelection

_ALONG = ("member", "step")
AUDIT_DIMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("decoder", "selection", "relevant_mass"), _ALONG),
    **dict.fromkeys(("risk", "ramp", "error"), (*_ALONG, "set")),
    "norms": (*_ALONG, "part"),
    "rate": (),
    **{f"svm_{name}": ("member",) for name in HeadSelection._fields},
    "svm_divergence": _ALONG,
    **{f"land_{name}": _ALONG for name in HeadLandscape._fields},
    "land_orbit": ("member", "alpha"),
    **{f"margin_{name}": ("member",) for name in HeadMargins._fields},
    **dict.fromkeys(("margin_reached", "relevant_selected", "certified"), ("member",)),
    **{f"margin_{name}": _ALONG for name in ("smallest", "drift", "moved")},
    "margin_errors": ("member", "predictor"),
    **dict.fromkeys(("stability", "stability_gap"), _ALONG),
    **{f"bound_{slug}": _ALONG for slug in DESCENT},
    "width": ("member", "version"),
    "asked": ("member", "theorem"),
    "gap": ("member", "bound"),
    "needed": ("member", "bound"),
}
"""Names of the axes of what `audit_heads` and `training_facts` return."""
_LABELS = {
    "set": ["training", "fresh"],
    "part": ["u", "W"],
    "alpha": ALPHAS,
    "predictor": ["kernel regression", "NTK max-margin"],
    "version": ["printed", "corrected"],
    "theorem": list(ASKED),
    "bound": list(COMPARED),
}


def audit_dataset(a: Mapping[str, np.ndarray], steps: np.ndarray) -> xr.Dataset:
    """Name the axes of an audit.

    Args:
        a: arrays of `audit_heads` and of `training_facts`.
        steps: vector of the recorded steps.

    Returns:
        The same arrays with labels; heads are members.

    Examples:
        >>> found = audit_dataset({"risk": np.zeros((1, 2, 2))}, np.array([0, 5]))
        >>> found.risk.sel(step=5, set="fresh").dims
        ('member',)
    """
    variables = {name: (AUDIT_DIMS[name], array) for name, array in a.items()}
    used = {dim for dims, _ in variables.values() for dim in dims}
    labels = {"step": steps, **_LABELS}
    return xr.Dataset(variables, {name: v for name, v in labels.items() if name in used})


def audit_arrays(data: xr.Dataset) -> dict[str, np.ndarray]:
    """The arrays of a data set, as `head_rows` and `ranked_bounds` read them.

    Args:
        data: data set of `audit_dataset`, at one label of each further axis.

    Returns:
        Arrays by name, their axes in the order of `audit_heads`.

    Examples:
        >>> given = {"norms": np.ones((3, 1, 2)), "rate": np.array(0.1)}
        >>> audit_arrays(audit_dataset(given, np.array([0])).transpose())["norms"].shape
        (3, 1, 2)
    """
    return {
        name: data[name].transpose(*dims).values
        for name, dims in AUDIT_DIMS.items()
        if name in data
    }
