r"""What an audit reports of every head or layer: one quantity has one name and one description."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import xarray as xr

from attlas.core.errors import UserError


class EvidenceLevel(StrEnum):
    """How a number is known."""

    PROVED = "proved"
    """A bound that holds for every input of the class it names, by a proof or a claim."""
    MEASURED = "checked on instances"
    """An exact value on the weights or on the sequences that were read."""
    HEURISTIC = "heuristic"
    """A summary whose meaning for the model's behaviour nobody has proved."""


class Quantity(NamedTuple):
    r"""A number per head or per layer.

    Attributes:
        name: of the variable in tables.
        title: what a reader sees, prose.
        formula: in $...$, or empty.
        meaning: what a large or a small value says, prose.
        null: name of the variable that holds its reference value, or empty.
        unit: what it is counted in, as said after a number, or empty.
        column: title of its column in the table of heads, or empty for none.
        ladder: label in the figure of certificates and attacks, or empty.
        follow: whether an audit of a folder of checkpoints records it for each.
        curve: title of its figure along the checkpoints, or empty.
    """

    name: str
    title: str
    formula: str
    meaning: str
    evidence: EvidenceLevel
    null: str = ""
    unit: str = ""
    column: str = ""
    ladder: str = ""
    follow: bool = False
    curve: str = ""


_DESCRIPTION = ("name", "title", "formula", "meaning", "standing", "null", "unit")
"""What tables and files say about a quantity, where `evidence` has its first name, "standing"."""


class Fact(NamedTuple):
    """A number of the whole model.

    Attributes:
        name: its key among the facts of an audit.
        title: what a reader sees.
        beside: key of a fact that is text and stands after the number, or empty.
        form: how it stands there, with {} for the text.
    """

    name: str
    title: str
    beside: str = ""
    form: str = " {}"


def labelled(
    quantities: Iterable[Quantity], values: Mapping[str, np.ndarray], dims: tuple[str, ...]
) -> xr.Dataset:
    """The values as a data set whose variables carry their descriptions.

    Args:
        values: arrays by name; those of intervals end in `_low` and `_high`, those of references
            in `_null`, those of certain signs in `_sign`, and describe the quantity before.
        dims: their axes, as in ("layer", "head").

    Returns:
        One variable per value; layers and heads are counted from 0.

    Raises:
        UserError: if a quantity has no value, or a value no quantity.

    Examples:
        >>> gain = Quantity("gain", "Gain", "", "", EvidenceLevel.MEASURED)
        >>> found = labelled([gain], {"gain": np.ones((2, 3))}, ("layer", "head"))
        >>> found.gain.sizes["head"], found.gain.attrs["standing"]
        (3, 'checked on instances')
    """
    described = {quantity.name: quantity for quantity in quantities}
    lacking = sorted(described.keys() - values.keys())
    if lacking:
        raise UserError(f"quantities without values: {', '.join(lacking)}")
    variables = {}
    for name, value in values.items():
        base = name
        for suffix in ("_low", "_high", "_null", "_sign"):
            base = base.removesuffix(suffix) if base not in described else base
        if base not in described:
            raise UserError(f"values without a quantity: {name}")
        attributes = {"of": base}
        if name == base:
            fields = described[base]._asdict() | {"standing": described[base].evidence}
            attributes = {key: str(fields[key]) for key in _DESCRIPTION}
        variables[name] = xr.Variable(dims, value, attributes)
    sizes = {dim: np.arange(next(iter(values.values())).shape[k]) for k, dim in enumerate(dims)}
    return xr.Dataset(variables, coords=sizes)
