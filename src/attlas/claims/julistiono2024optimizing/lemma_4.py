r"""Lemma 4: the norm grows slowly; W is W(k), W+ = W(k+1), Lambda the bound of Lemma 18.

The proof's chain: ||W|| (||W+||^{p-1} - ||W||^{p-1}) <= (p-1)/p (||W+||^p - ||W||^p)
<= eta ||W+|| ||grad L||_q <= eta ||W+|| Lambda. Ours needs no chain: the norm of the mirror
variable is ||W||^{p-1}, and it moves by eta grad L.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    dual_norm,
    gradient,
    mirror_step,
    on_trajectory,
)
from attlas.claims.julistiono2024optimizing.lemma_18 import gradient_bound
from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Link, Provenance, Sides, Status

_PAPER = "julistiono2024optimizing"


def _norms(instance: Instance) -> tuple[Array, Array, Array]:
    """The norms of W and W+, and the dual norm of the gradient."""
    W, p = instance["W"], instance["p"]
    slope = gradient(instance, W)
    after = mirror_step(W, slope, instance["eta"], p)
    return entrywise_norm(W, p), entrywise_norm(after, p), dual_norm(slope, p)


def _growth(instance: Instance, power: Array) -> tuple[Array, Array]:
    """Growth of a power of the norm, and the magnitude of what is subtracted."""
    before, after, _ = _norms(instance)
    return after**power - before**power, after**power + before**power


def _printed(instance: Instance, order: float = 1.0) -> Sides:
    growth, scale = _growth(instance, instance["p"] - 1)
    return Sides(growth, instance["eta"] ** order * gradient_bound(instance, 2.0), scale=scale)


def _own(instance: Instance, drop: float = 1.0) -> Sides:
    growth, scale = _growth(instance, instance["p"] - drop)
    _, _, slope = _norms(instance)
    return Sides(jnp.abs(growth), instance["eta"] * slope, scale=scale + instance["eta"] * slope)


LEMMA_4 = Claim(
    name=f"{_PAPER}/lemma-4",
    paper=_PAPER,
    locator="Lemma 4",
    statement=(
        r"\|W(k+1)\|_{p,p}^{p-1} - \|W(k)\|_{p,p}^{p-1} \le \eta \Lambda,"
        r"\quad \Lambda \text{ as in Lemma 18}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=on_trajectory,
    sides=_printed,
    free=("W", "X", "v"),
    control=(Control("eta cubed in place of eta", sides=partial(_printed, order=3.0)),),
    terms=ROUNDINGS,
    note=(
        "The printed bound is O(eta); the constant Lambda is ours. Most of the slack comes from "
        "Lambda: see the links of the proof, and the claim with the gradient's own norm. Against "
        "this loose Lambda even the p-th powers, the control first thought of, stay below."
    ),
)

LEMMA_4_GRADIENT = Claim(
    name=f"{_PAPER}/lemma-4-gradient",
    paper=_PAPER,
    locator="Lemma 4, with the gradient's norm",
    statement=(
        r"\big| \|W(k+1)\|_{p,p}^{p-1} - \|W(k)\|_{p,p}^{p-1} \big|"
        r"\le \eta \|\nabla \mathcal{L}(W(k))\|_{q,q}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=on_trajectory,
    sides=_own,
    free=("W", "X", "v"),
    control=(Control("p-th powers of the norms", sides=partial(_own, drop=0.0)),),
    terms=ROUNDINGS,
    note=(
        "Both directions, by the triangle inequality for the mirror variable, whose dual norm is "
        "the power p - 1 of the norm. An equality where W is along the gradient."
    ),
)


def _first_link(instance: Instance, inverted: bool = False) -> Sides:
    before, _, _ = _norms(instance)
    p = instance["p"]
    ratio = p / (p - 1) if inverted else (p - 1) / p
    small, small_scale = _growth(instance, p - 1)
    large, large_scale = _growth(instance, p)
    scale = before * small_scale + ratio * large_scale
    return Sides(before * small, ratio * large, scale=scale)


def _second_link(instance: Instance, inverted: bool = False) -> Sides:
    _, after, slope = _norms(instance)
    p, eta = instance["p"], instance["eta"]
    large, scale = _growth(instance, p)
    ratio = p / (p - 1) if inverted else (p - 1) / p
    return Sides(ratio * large, eta * after * slope, scale=scale)


def _third_link(instance: Instance, shrunk: bool = False) -> Sides:
    _, after, slope = _norms(instance)
    bound = gradient_bound(instance, 0.05 if shrunk else 2.0)
    return Sides(after * slope, after * bound)


_LINKS = (
    (
        1,
        r"\|W(k)\| (\|W(k+1)\|^{p-1} - \|W(k)\|^{p-1})"
        r"\le \frac{p-1}{p} (\|W(k+1)\|^p - \|W(k)\|^p)",
        _first_link,
        Control("p and p - 1 exchanged", sides=partial(_first_link, inverted=True)),
        "Lemma 14 at the two norms.",
    ),
    (
        2,
        r"\frac{p-1}{p} (\|W(k+1)\|^p - \|W(k)\|^p)"
        r"\le \eta \|W(k+1)\| \|\nabla\mathcal{L}(W(k))\|_{q,q}",
        _second_link,
        Control("p and p - 1 exchanged", sides=partial(_second_link, inverted=True)),
        "Convexity of the conjugate of psi, then Hoelder's inequality.",
    ),
    (
        3,
        r"\|W(k+1)\| \|\nabla\mathcal{L}(W(k))\|_{q,q} \le \|W(k+1)\| \Lambda",
        _third_link,
        Control("a fortieth of Lambda", sides=partial(_third_link, shrunk=True)),
        "Lemma 18: most of the slack of Lemma 4 arises here.",
    ),
)

LEMMA_4_CHAIN = tuple(
    Claim(
        name=f"{_PAPER}/lemma-4-link-{position}",
        paper=_PAPER,
        locator=f"Lemma 4, proof, step {position}",
        statement=statement,
        kind=Kind.INEQUALITY,
        status=Status.RECONSTRUCTED,
        provenance=Provenance.DERIVED,
        instances=on_trajectory,
        sides=sides,
        control=(control,),
        terms=ROUNDINGS,
        ledger=Link("Lemma 4", position),
        note=note,
    )
    for position, statement, sides, control, note in _LINKS
)
