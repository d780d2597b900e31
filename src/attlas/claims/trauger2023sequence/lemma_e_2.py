r"""Lemmas E.2 and E.3: how an error in the weights and in the rows passes one normalised layer.

Rows are those after an inner layer, of norm at most 1. All norms are measured on the pair.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.trauger2023sequence.layer_instances import (
    ROUNDINGS,
    TOKENS,
    WIDTH,
    close_query_key,
    close_rows,
    hidden,
    in_ball,
    layer,
    longest,
    random_matrices,
    spectral,
    weights_of,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.networks.transformer import pi_norm

_PAPER = "trauger2023sequence"
_NAMES = ("query_key", "value", "output")


def _close(rng: np.random.Generator, kind: int) -> dict[str, np.ndarray]:
    """A pair that nearly attains one term: that of the rows (0), of W_QK, of W_v or of W_c (3)."""
    rows, move = (part[0] for part in close_rows(rng, 1))
    step, sharp = 10.0 ** rng.uniform(-6, -4), close_query_key(10.0 ** rng.uniform(0, 2, 1))
    eye, zero = np.eye(WIDTH), np.zeros((WIDTH, WIDTH))
    weights = {"query_key": sharp[0] if kind == 0 else zero, "value": eye, "output": eye}
    g = {
        0: rows,
        1: np.resize([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], (TOKENS, WIDTH)),
    }.get(kind, np.broadcast_to(eye[1] / 2, (TOKENS, WIDTH)))
    pair = {"g": g, "g_hat": in_ball(g + move) if kind == 0 else g, "slope": np.ones(())}
    for place, (name, matrix) in enumerate(weights.items(), 1):
        error = step * np.outer(eye[1], eye[1]) if place == kind else zero
        pair |= {name: matrix[None], f"{name}_hat": (matrix + error)[None]}
    return pair


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Random pairs, flat to saturated attention, and pairs close to each constant in turn."""
    rng = generator(key)
    g = in_ball(rng.normal(size=(count, TOKENS, WIDTH)) * rng.uniform(0.1, 2, (count, 1, 1)))
    move = 10.0 ** rng.uniform(-4, 0, (count, 1, 1)) * rng.normal(size=g.shape)
    batch = {
        "g": g,
        "g_hat": in_ball(g + move),
        "slope": rng.uniform(0, 1, count),
        "lipschitz": rng.uniform(0.5, 2, count),
    }
    for name in _NAMES:
        matrix = random_matrices(rng, (count, 1, WIDTH, WIDTH))
        error = 10.0 ** rng.uniform(-4, -0.5, (count, 1, 1, 1)) * rng.normal(size=matrix.shape)
        batch |= {name: matrix, f"{name}_hat": matrix + error}
    for place in range(1, count, 2):
        for name, value in _close(rng, (place // 2) % 4).items():
            batch[name][place] = value
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _in_ball(instance: Instance) -> dict[str, Array]:
    return {**instance, "g": pi_norm(instance["g"]), "g_hat": pi_norm(instance["g_hat"])}


def _terms(instance: Instance, kappa: float, both: bool) -> tuple[Array, Array]:
    """The measured change, and the right side's terms: W_c, rows, W_QK and W_v."""
    true, hat = weights_of(instance), weights_of(instance, "_hat")
    g, g_hat = instance["g"], instance["g_hat"]
    shape = (instance["lipschitz"], instance["slope"])
    moved = longest(layer(true, g, *shape) - layer(hat, g_hat, *shape))
    size = {name: spectral(instance[name])[0] for name in _NAMES}
    if both:
        size = {n: jnp.maximum(s, spectral(instance[f"{n}_hat"])[0]) for n, s in size.items()}
    outer = instance["lipschitz"] * size["output"]
    inner = outer * size["value"]
    seen = hidden(hat, g_hat, *shape)[0]
    terms = (
        longest(seen @ (true.output - hat.output)[0]),
        inner * (1 + 2 * kappa * size["query_key"]) * longest(g - g_hat),
        kappa * inner * longest(g_hat @ (true.query_key - hat.query_key)[0]),
        outer * longest(g_hat @ (true.value - hat.value)[0]),
    )
    return moved, jnp.stack(terms)


def _sides(
    instance: Instance,
    kappa: float = 2.0,
    both: bool = True,
    without: tuple[int, ...] = (),
    query_only: bool = False,
) -> Sides:
    moved, terms = _terms(instance, kappa, both)
    kept = jnp.asarray([float(place not in without) for place in range(4)])
    right = jnp.sum(kept * terms)
    if query_only:
        # the growth of the rows with one end of the logits in place of both
        inner = instance["lipschitz"] * spectral(instance["output"])[0]
        inner = inner * spectral(instance["value"])[0]
        ends = kappa * spectral(instance["query_key"])[0]
        right = right - inner * ends * longest(instance["g"] - instance["g_hat"])
    # the rows are of size L ||W_c||, their difference is what is compared
    scale = 1 + instance["lipschitz"] * spectral(instance["output"])[0]
    return Sides(moved, right, scale=scale * (1 + spectral(instance["query_key"])[0]))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _instances,
    "terms": ROUNDINGS,
}

LEMMA_E_2 = Claim(
    name=f"{_PAPER}/lemma-e-2",
    locator="Lemma E.2, inner layers",
    statement=(
        r"\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le "
        r"\|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}"
        r"+ L_\sigma B_c B_v (1+4B_{QK}) \|(g-\hat g)^\top\|_{2,\infty}"
        r"+ 2 L_\sigma B_c B_v \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty}"
        r"+ L_\sigma B_c \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=_sides,
    control=(
        Control("without the term of W_c", sides=partial(_sides, without=(0,))),
        Control("without the growth of the rows", sides=partial(_sides, without=(1,))),
        Control("without the term of W_QK", sides=partial(_sides, without=(2,))),
        Control("without the term of W_v", sides=partial(_sides, without=(3,))),
    ),
    note=(
        "Rows of norm at most 1, as after any layer but the first; B bounds both networks. The "
        "terms of W_c and of W_v are attained; for the other two see lemma-e-2-sharp, and for "
        "the first layer lemma-e-2-first-layer."
    ),
    **_COMMON,
)

LEMMA_E_2_SHARP = Claim(
    name=f"{_PAPER}/lemma-e-2-sharp",
    locator="Lemma E.2 with 1 for the softmax",
    statement=(
        r"\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le "
        r"\|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}"
        r"+ L_\sigma \|W_c\| \|W_v\| \big( (1+2\|W_{QK}\|) \|(g-\hat g)^\top\|_{2,\infty}"
        r"+ \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty} \big)"
        r"+ L_\sigma \|W_c\| \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=partial(_sides, kappa=1.0, both=False),
    control=(
        Control("1/2 for the softmax", sides=partial(_sides, kappa=0.5, both=False)),
        Control(
            "1 + ||W_QK|| in place of 1 + 2 ||W_QK||",
            sides=partial(_sides, kappa=1.0, both=False, query_only=True),
        ),
    ),
    free=("g", "g_hat"),
    domain=_in_ball,
    note=(
        "Only norms of the unhatted weights enter, so that centres of a cover may lie outside the "
        "class. The constants are attained in the limit: 1 for W_QK by two opposite tokens at "
        "equal weight, 2 ||W_QK|| by a query and keys that move together under sharp attention."
    ),
    **_COMMON,
)


def _readouts(key: PRNGKeyArray, count: int) -> Instance:
    """Two rows in the ball and two readouts; in every other pair only one of them differs."""
    rng = generator(key)
    y = in_ball(rng.normal(size=(count, WIDTH)))
    w = rng.normal(size=(count, WIDTH)) * 10.0 ** rng.uniform(-1, 1, (count, 1))
    error = rng.normal(size=(2, count, WIDTH)) * 10.0 ** rng.uniform(-4, 0, (2, count, 1))
    error[0, 1::4] = 0
    error[1, 3::4] = 0
    batch = {"y": y, "y_hat": in_ball(y + error[0]), "w": w, "w_hat": w + error[1]}
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _readout(instance: Instance, rows: float = 1.0, readout: float = 1.0) -> Sides:
    y, y_hat, w, w_hat = (instance[k] for k in ("y", "y_hat", "w", "w_hat"))
    change = longest((y - y_hat)[None])
    right = rows * longest(w[None]) * change + readout * jnp.abs((w - w_hat) @ y_hat)
    return Sides(jnp.abs(w @ y - w_hat @ y_hat), right, scale=longest(w[None]) + 1)


LEMMA_E_3 = Claim(
    name=f"{_PAPER}/lemma-e-3",
    paper=_PAPER,
    locator="Lemma E.3",
    statement=(
        r"|w^\top Y - \hat w^\top \hat Y| \le \|w\| \|Y-\hat Y\| + |(w-\hat w)^\top \hat Y|"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_readouts,
    sides=_readout,
    control=(
        Control("without the term of the rows", sides=partial(_readout, rows=0.0)),
        Control("without the term of the readout", sides=partial(_readout, readout=0.0)),
    ),
    terms=32,
    note="Rows Y of the last layer are any rows in the unit ball. Attained.",
)
