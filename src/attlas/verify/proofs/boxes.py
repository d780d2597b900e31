r"""Proofs of inequalities on a box that contains what the sampler of a claim draws.

The entries that vary are coordinates, at most `MOST_COORDINATES`. Each array has a lower and an
upper end in two digits, of all draws or without the outermost tenths; branch and bound
(`attlas.verify.proofs.box_search`) proves left <= right there, wherever the assumptions hold, as
real numbers and without any allowance for rounding. Arrays keep their sizes: a statement that holds
for two entries may be false for those that a sampler draws.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.proof import BOX, Proof
from attlas.claims.verdict import Outcome
from attlas.core.names import parameters
from attlas.verify.digits.confirm import confirmed
from attlas.verify.intervals import Undecided
from attlas.verify.proofs import elementary
from attlas.verify.proofs.box_search import MOST_BOXES, BoxProgram, Coordinate, evaluator, search
from attlas.verify.proofs.confirmed_proof import confirmed_proof
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.identities import read_by

MOST_COORDINATES = 8
_MOST_ENTRIES = 16
"""Entries of the sides."""
SECONDS, _AGAIN = 5.0, 40.0
"""Seconds of a processor for a search; how often as many for one that ended on some machine."""
_TAILS = (0.0, 0.15)
"""Shares of the draws that lie below the lower ends, and above the upper ones."""
_LEAST_SHARE = 0.02
"""Share of the draws that must lie in a box."""
_SPREAD = 8.0
"""Ratio of ends from which positive numbers are halved by their logarithms."""
_POINTS, _CHECKED = 2048, 4
_TRUSTED = (
    "the tracing and the derivatives of JAX, outward rounding of +, -, *, / and roots of IEEE 754, "
    "for gamma, error and wave functions series in decimals, and the branch and bound of "
    "attlas.verify.proofs"
)
Batch = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Box:
    """Where an inequality is proved.

    Attributes:
        ends: lower and upper end of the entries that vary, by the names of the arrays.
        logarithmic: arrays whose logarithms are halved.
        shapes: shapes of the arrays whose entries vary.
        ratio: whether log left - log right is enclosed, and not left - right.
    """

    ends: Mapping[str, tuple[float, float]]
    logarithmic: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]]
    ratio: bool = False

    def sentence(self, conditional: bool) -> str:
        """The box in words.

        Examples:
            >>> Box({"x": (0.0, 2.0)}, frozenset(), {"x": (2,)}).sentence(False)
            'for all entries of x of shape (2,) from 0 to 2'
        """
        words = [
            f"entries of {name} of shape {self.shapes[name]} from {low:g} to {high:g}"
            if self.shapes[name]
            else f"{name} from {low:g} to {high:g}"
            for name, (low, high) in sorted(self.ends.items())
        ]
        return f"for all {', '.join(words)}{' that meet its assumptions' if conditional else ''}"


def proved_on_box(claim: Claim, *, seed: int = 0, seconds: float = SECONDS) -> Proof:
    """Prove an inequality on a box of its draws.

    Args:
        seed: the draws follow from it.
        seconds: seconds of a processor for each search.

    Raises:
        NotProvedError: says why not.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> proved_on_box(one_claim("gu2024exploring/fact-a-6")).sentence()
        'proved by branch and bound for all x from -0.099 to 0.092'
    """
    if type(claim.kind.rule) is not Inequality or claim.backend == "numpy":
        raise NotProvedError(
            "only identities, inequalities in JAX and stored witnesses have a method"
        )
    if claim.expect.outcome is not Outcome.SUPPORTED:
        raise NotProvedError("it is expected to be violated")
    with jax.enable_x64(True), np.errstate(all="ignore"):
        drawn = claim.draw(seed, claim.count)
        if {"left", "right"} <= drawn.keys():
            raise NotProvedError("its sides are computed outside of its program")
        try:
            return _proved(claim, _numbers(drawn), seed, seconds)
        except Undecided as reason:
            raise NotProvedError(str(reason)) from reason


def _numbers(drawn: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The drawn arrays of numbers."""
    return {name: np.asarray(v) for name, v in drawn.items() if v.dtype.kind in "biuf"}


def _coordinates(claim: Claim, batch: Batch) -> tuple[Coordinate, ...]:
    """The entries that vary among those that sides or assumptions read."""
    first = {name: jnp.asarray(v[0]) for name, v in batch.items()}
    read = read_by(claim, first)
    for assumption in claim.assumptions:
        read |= set(parameters(assumption.predicate).arrays) & batch.keys()
    varying = {name: (batch[name] != batch[name][:1]).any(axis=0) for name in sorted(read)}
    for name, varies in varying.items():
        if batch[name].dtype.kind != "f" and varies.any():
            raise NotProvedError(f"'{name}' has whole numbers that vary")
    places = [
        (name, place)
        for name, varies in varying.items()
        for place in np.ndindex(varies.shape)
        if varies[place]
    ]
    if not 0 < len(places) <= MOST_COORDINATES:
        raise NotProvedError(f"it has {len(places)} coordinates, more than {MOST_COORDINATES}")
    return tuple(Coordinate(name, place) for name, place in places)


def _box(batch: Batch, coordinates: tuple[Coordinate, ...], tail: float) -> Box:
    """The ends of each array, without a share of its draws at both sides."""
    ends, logarithmic = {}, set()
    for name in dict.fromkeys(c.array for c in coordinates):
        values = np.stack([batch[name][(slice(None), *c.place)]
                           for c in coordinates if c.array == name])  # fmt: skip
        low, high = np.quantile(values, [tail, 1 - tail])
        ends[name] = _two_digits(float(low), up=False), _two_digits(float(high), up=True)
        if ends[name][0] > 0 and ends[name][1] > _SPREAD * ends[name][0]:
            logarithmic.add(name)
    shapes = {name: batch[name].shape[1:] for name in ends}
    return Box(ends, frozenset(logarithmic), shapes)


def _two_digits(x: float, *, up: bool) -> float:
    """The next number of two digits at that side."""
    if x == 0 or not np.isfinite(x):
        return x
    exponent = int(np.floor(np.log10(abs(x)))) - 1
    whole = x / 10.0**exponent
    near = round(whole)
    if abs(whole - near) > 1e-9:
        near = int(np.ceil(whole) if up else np.floor(whole))
    rounded = float(f"{near}e{exponent}")
    if rounded < x if up else rounded > x:
        rounded = float(f"{near + (1 if up else -1)}e{exponent}")
    return rounded


def _proved(claim: Claim, batch: dict[str, np.ndarray], seed: int, seconds: float) -> Proof:
    places = _coordinates(claim, batch)
    why = "no box has enough draws"
    for tail in _TAILS:
        box = _box(batch, places, tail)
        coordinates = tuple(replace(c, logarithmic=c.array in box.logarithmic) for c in places)
        inside = _inside(batch, coordinates, box)
        if inside.mean() < _LEAST_SHARE:
            break
        program = BoxProgram(claim, coordinates, _first(batch), {})
        positive = _refuse_in_floats(program, claim, coordinates, batch, box)
        for ratio in (True, False) if positive else (False,):
            try:
                parts = _searched(claim, batch, coordinates, replace(box, ratio=ratio), seconds)
            except NotProvedError as reason:
                why = str(reason)
                continue
            narrow = replace(box, ratio=ratio)
            return _confirmed(claim, batch, coordinates, narrow, inside, parts, seed, seconds)
    raise NotProvedError(why)


def _first(batch: Batch) -> dict[str, np.ndarray]:
    return {name: np.asarray(v[0]) for name, v in batch.items()}


def _columns(batch: Batch, coordinates: tuple[Coordinate, ...]) -> np.ndarray:
    """The coordinates of all draws, shape (count, coordinates)."""
    columns = [batch[c.array][(slice(None), *c.place)] for c in coordinates]
    return np.stack([np.log(column) if c.logarithmic else column
                     for c, column in zip(coordinates, columns, strict=True)], axis=1)  # fmt: skip


def _limits(box: Box, coordinates: tuple[Coordinate, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the coordinates; those of logarithms enclose the true ones."""
    low = np.array([box.ends[c.array][0] for c in coordinates])
    high = np.array([box.ends[c.array][1] for c in coordinates])
    logarithmic = np.array([c.logarithmic for c in coordinates])
    low[logarithmic] = elementary.logarithm(low[logarithmic])[0]
    high[logarithmic] = elementary.logarithm(high[logarithmic])[1]
    return low, high


def _inside(batch: Batch, coordinates: tuple[Coordinate, ...], box: Box) -> np.ndarray:
    """Which draws lie in a box."""
    low, high = _limits(box, coordinates)
    columns = _columns(batch, coordinates)
    return np.asarray(((columns >= low) & (columns <= high)).all(axis=1))


def _searched(
    claim: Claim,
    batch: Batch,
    coordinates: tuple[Coordinate, ...],
    box: Box,
    seconds: float,
    again: float = 1.0,
) -> int:
    program = BoxProgram(claim, coordinates, _first(batch), {}, ratio=box.ratio)
    most = int(MOST_BOXES * max(1.0, seconds / SECONDS))
    return search(program, *_limits(box, coordinates), seconds * again, most)


def _refuse_in_floats(
    program: BoxProgram,
    claim: Claim,
    coordinates: tuple[Coordinate, ...],
    batch: Batch,
    box: Box,
) -> bool:
    """Refuse boxes in which floats refute the claim, or do not refute one of its controls.

    Returns:
        Whether both sides are positive.
    """
    if program.entries > _MOST_ENTRIES:
        raise NotProvedError(f"its sides have {program.entries} entries")
    drawn = _columns(batch, coordinates)[_inside(batch, coordinates, box)]
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    rng = np.random.default_rng(0)
    random = rng.uniform(low, high, size=(_POINTS, len(low)))
    corners = np.where(rng.uniform(size=random.shape) < 0.5, low, high)
    points = jnp.asarray(np.concatenate([drawn, random, corners]))
    holds = np.asarray(evaluator(program.holds)(points))
    if not holds[: len(drawn)].any():
        raise NotProvedError("its assumptions hold at no draw")
    left, right = (np.asarray(side)[holds] for side in evaluator(program.sides)(points))
    if (left - right > 1e-12 * np.maximum(np.abs(left), np.abs(right))).any():
        raise NotProvedError("floats refute it in the box of its draws: arrays depend on others")
    _refuse_controls_inside(program, claim, coordinates, box)
    for control in claim.controls:
        if control.changes and control.expect is Outcome.VIOLATED:
            changed = BoxProgram(claim, coordinates, _first(batch), control.changes)
            above, below = (np.asarray(s)[holds] for s in evaluator(changed.sides)(points))
            if not (above - below > 1e-12 * np.maximum(np.abs(above), np.abs(below))).any():
                text = f"the control '{control.description}' is not refuted in the box"
                raise NotProvedError(text)
    return bool((left > 0).all() and (right > 0).all())


def _refuse_controls_inside(
    program: BoxProgram, claim: Claim, coordinates: tuple[Coordinate, ...], box: Box
) -> None:
    """Refuse a box with instances of a control that stands for a false statement."""
    for control in claim.controls:
        if control.sample is None or control.changes or control.expect is not Outcome.VIOLATED:
            continue
        others = _numbers(claim.draw(0, claim.count, control))
        if any(others[c.array].ndim != 1 + len(c.place) for c in coordinates):
            raise NotProvedError(f"the control '{control.description}' has arrays of other shapes")
        points = jnp.asarray(_columns(others, coordinates)[_inside(others, coordinates, box)])
        if len(points) and np.asarray(evaluator(program.holds)(points)).any():
            raise NotProvedError(f"the control '{control.description}' has instances in the box")


def _confirmed(
    claim: Claim,
    batch: Batch,
    coordinates: tuple[Coordinate, ...],
    box: Box,
    inside: np.ndarray,
    parts: int,
    seed: int,
    seconds: float,
) -> Proof:
    """The proof: the box, and what another run of the search must agree with."""
    where = {
        "shapes": {name: list(shape) for name, shape in box.shapes.items()},
        "box": {name: list(ends) for name, ends in box.ends.items()},
    }
    certificate = {
        "coordinates": [[c.array, list(c.place), c.logarithmic] for c in coordinates],
        "ratio": box.ratio,
        "parts": parts,
        "share": round(float(inside.mean()), 3),
        **({"seconds": seconds} if seconds != SECONDS else {}),
    }
    return confirmed_proof(
        claim,
        BOX,
        box.sentence(bool(claim.assumptions)),
        where,
        _TRUSTED,
        certificate,
        lambda proof: _in_digits(claim, proof, seed=seed),
    )


def _read(claim: Claim, proof: Proof) -> tuple[Box, tuple[Coordinate, ...], dict[str, np.ndarray]]:
    """The box of a stored proof, its coordinates, and the other numbers as they are drawn."""
    coordinates = tuple(
        Coordinate(name, tuple(place), logarithmic)
        for name, place, logarithmic in proof.certificate["coordinates"]
    )
    box = Box(
        {name: (ends[0], ends[1]) for name, ends in proof.where["box"].items()},
        frozenset(c.array for c in coordinates if c.logarithmic),
        {name: tuple(shape) for name, shape in proof.where["shapes"].items()},
        proof.certificate["ratio"],
    )
    batch = _numbers(claim.draw(0, claim.count))
    return box, coordinates, batch


def recheck_on_box(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Run the search of a stored box again, and evaluate points of it in digits.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    with jax.enable_x64(True), np.errstate(all="ignore"):
        box, coordinates, batch = _read(claim, proof)
        stored = {replace(c, logarithmic=False) for c in coordinates}
        try:
            if set(_coordinates(claim, batch)) != stored:
                return "other entries vary now"
            seconds = proof.certificate.get("seconds", SECONDS)
            _searched(claim, batch, coordinates, box, seconds, _AGAIN)
        except (NotProvedError, Undecided) as reason:
            return str(reason)
    return _in_digits(claim, proof, seed=seed)


def _in_digits(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Evaluate random points and corners of the box of a proof in digits.

    This shares no arithmetic with the search.

    Returns:
        Why they do not confirm the proof; empty where they do.
    """
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        box, coordinates, batch = _read(claim, proof)
        program = BoxProgram(claim, coordinates, _first(batch), {})
        low, high = _limits(box, coordinates)
        for k in range(_CHECKED):
            at = rng.uniform(size=len(low)) if k % 2 else rng.integers(0, 2, len(low))
            instance = program.instance(jnp.asarray(np.clip(low + at * (high - low), low, high)))
            if not all(bool(a.holds(instance)) for a in claim.assumptions):
                continue
            confirmation = confirmed(claim, {k: np.asarray(v) for k, v in instance.items()})
            if confirmation.violates:
                return confirmation.reason
    return ""
