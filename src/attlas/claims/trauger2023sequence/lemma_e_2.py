r"""Lemmas E.2 and E.3: how an error in the weights and in the rows passes one normalised layer.

Rows are those after an inner layer, of norm at most 1. All norms are measured on the pair.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

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
from attlas.core.claim import Control, Sides, Source, Status
from attlas.core.statement import inequality
from attlas.models.networks.transformer import pi_norm

_NAMES = ("query_key", "value", "output")


def _close(rng, kind):
    """A pair that nearly attains one term: that of the rows (0), of W_QK, of W_v or of W_c (3)."""
    rows, move = (part[0] for part in close_rows(rng, 1))
    step, sharp = 10.0 ** rng.uniform(-6, -4), close_query_key(10.0 ** rng.uniform(0, 2, 1))
    eye, zero = np.eye(WIDTH), np.zeros((WIDTH, WIDTH))
    weights = {"query_key": sharp[0] if kind == 0 else zero, "value": eye, "output": eye}
    opposite = np.resize([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], (TOKENS, WIDTH))
    g = (rows, opposite)[kind] if kind < 2 else np.broadcast_to(eye[1] / 2, (TOKENS, WIDTH))
    pair = {"g": g, "g_hat": in_ball(g + move) if kind == 0 else g, "slope": np.ones(())}
    for place, (name, matrix) in enumerate(weights.items(), 1):
        error = step * np.outer(eye[1], eye[1]) if place == kind else zero
        pair |= {name: matrix[None], f"{name}_hat": (matrix + error)[None]}
    return pair


def layer_pairs(rng, count):
    """Random pairs, flat to saturated attention, and pairs close to each constant in turn."""
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
    return batch


def _terms(pair, kappa, both):
    """The measured change, and the right side's terms: W_c, rows, W_QK and W_v."""
    true, hat = weights_of(pair), weights_of(pair, "_hat")
    g, g_hat, shape = pair["g"], pair["g_hat"], (pair["lipschitz"], pair["slope"])
    moved = longest(layer(true, g, *shape) - layer(hat, g_hat, *shape))
    size = {name: spectral(pair[name])[0] for name in _NAMES}
    if both:
        size = {n: jnp.maximum(s, spectral(pair[f"{n}_hat"])[0]) for n, s in size.items()}
    outer = pair["lipschitz"] * size["output"]
    inner = outer * size["value"]
    seen = hidden(hat, g_hat, *shape)[0]
    terms = (
        longest(seen @ (true.output - hat.output)[0]),
        inner * (1 + 2 * kappa * size["query_key"]) * longest(g - g_hat),
        kappa * inner * longest(g_hat @ (true.query_key - hat.query_key)[0]),
        outer * longest(g_hat @ (true.value - hat.value)[0]),
    )
    return moved, jnp.stack(terms)


def _magnitude(pair):
    """The rows are of size L ||W_c||, their difference is what is compared."""
    size = 1 + pair["lipschitz"] * spectral(pair["output"])[0]
    return size * (1 + spectral(pair["query_key"])[0])


on_layers = partial(
    inequality,
    sample=layer_pairs,
    search_over=("g", "g_hat", *(name + hat for name in _NAMES for hat in ("", "_hat"))),
    project=lambda g, g_hat: {"g": pi_norm(g), "g_hat": pi_norm(g_hat)},
    roundings=ROUNDINGS,
)


@on_layers(
    "Lemma E.2, inner layers",
    Source.FOUND,
    controls=[
        Control("without the term of $W_c$", without=0),
        Control("without the growth of the rows", without=1),
        Control("without the term of $W_{QK}$", without=2),
        Control("without the term of $W_v$", without=3),
    ],
)
def lemma_e_2(*, without=None, **pair):
    r"""$$\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le
    \|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}
    + L_\sigma B_c B_v (1+4B_{QK}) \|(g-\hat g)^\top\|_{2,\infty}
    + 2 L_\sigma B_c B_v \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty}
    + L_\sigma B_c \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}$$

    Rows of norm at most 1, as after any layer but the first; $B$ bounds both networks. The terms
    of $W_c$ and of $W_v$ are attained; for the other two see lemma-e-2-sharp, and for the first
    layer lemma-e-2-first-layer.
    """
    moved, terms = _terms(pair, kappa=2.0, both=True)
    kept = jnp.asarray([float(place != without) for place in range(4)])
    return Sides(moved, jnp.sum(kept * terms), magnitude=_magnitude(pair))


@on_layers(
    "Lemma E.2 with 1 for the softmax",
    status=Status.SHARPENED,
    controls=[
        Control("1/2 for the softmax", kappa=0.5),
        Control(r"$1 + \|W_{QK}\|$ in place of $1 + 2 \|W_{QK}\|$", query_only=True),
    ],
)
def lemma_e_2_sharp(*, kappa=1.0, query_only=False, **pair):
    r"""$$\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le
    \|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}
    + L_\sigma \|W_c\| \|W_v\| \big( (1+2\|W_{QK}\|) \|(g-\hat g)^\top\|_{2,\infty}
    + \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty} \big)
    + L_\sigma \|W_c\| \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}$$

    Only norms of the unhatted weights enter, so that centres of a cover may lie outside the class.
    The constants are attained in the limit: 1 for $W_{QK}$ by two opposite tokens at equal weight,
    $2 \|W_{QK}\|$ by a query and keys that move together under sharp attention.
    """
    moved, terms = _terms(pair, kappa, both=False)
    right = jnp.sum(terms)
    if query_only:
        # the growth of the rows with one end of the logits in place of both
        inner = pair["lipschitz"] * spectral(pair["output"])[0] * spectral(pair["value"])[0]
        ends = kappa * spectral(pair["query_key"])[0]
        right = right - inner * ends * longest(pair["g"] - pair["g_hat"])
    return Sides(moved, right, magnitude=_magnitude(pair))


def readouts(rng, count):
    """Two rows in the ball and two readouts; in every other pair only one of them differs."""
    y = in_ball(rng.normal(size=(count, WIDTH)))
    w = rng.normal(size=(count, WIDTH)) * 10.0 ** rng.uniform(-1, 1, (count, 1))
    error = rng.normal(size=(2, count, WIDTH)) * 10.0 ** rng.uniform(-4, 0, (2, count, 1))
    error[0, 1::4] = 0
    error[1, 3::4] = 0
    return {"y": y, "y_hat": in_ball(y + error[0]), "w": w, "w_hat": w + error[1]}


@inequality(
    "Lemma E.3",
    Source.FOUND,
    sample=readouts,
    search_over=("y", "y_hat", "w", "w_hat"),
    roundings=32,
    controls=[
        Control("without the term of the rows", rows=0.0),
        Control("without the term of the readout", readout=0.0),
    ],
)
def lemma_e_3(y, y_hat, w, w_hat, *, rows=1.0, readout=1.0):
    r"""$$|w^\top Y - \hat w^\top \hat Y| \le \|w\| \|Y-\hat Y\| + |(w-\hat w)^\top \hat Y|$$

    Rows $Y$ of the last layer are any rows in the unit ball. Attained.
    """
    size, change = longest(w[None]), longest((y - y_hat)[None])
    right = rows * size * change + readout * jnp.abs((w - w_hat) @ y_hat)
    return Sides(jnp.abs(w @ y - w_hat @ y_hat), right, magnitude=size + 1)
