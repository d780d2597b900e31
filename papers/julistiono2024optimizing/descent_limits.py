r"""Norm divergence, direction and rate on the discrete descent, with a constant step.

Plain l_p-AttGD from W(0) in C_{p,mu_0,R_delta}; the first step moves the mirror variable as 1/10 of
||W_mm|| would. A thousand steps are taken one at a time, then blocks of steps by the modified
equation of the descent (`descent_blocks`), which 10^5 steps taken one at a time confirm. From
log k = 50 on a step changes the gradient by less than one rounding, so that descent and flow are
one, and implicit steps of the flow go on to norms of 10^10, where rates can be distinguished.
"""

from copy import deepcopy
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.sampling import shared
from attlas.claims.statement import inequality, limit, rate
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import inverse_potential_gradient, mirror_step, potential_gradient
from julistiono2024optimizing.cone_instances import mixed_loss, plain_norm, scores
from julistiono2024optimizing.convergence import envelope
from julistiono2024optimizing.flow_instances import (
    COUNT,
    SHARES,
    continued,
    gaussian_selections,
    near_the_cone,
    read_late,
    solved,
)
from julistiono2024optimizing.lemma_27 import measured_step, small_enough
from julistiono2024optimizing.library.token_selection.descent_blocks import descent_blocks
from julistiono2024optimizing.library.token_selection.gradient import (
    scaled_gradient,
    selection_gradient,
)

DRAWN = COUNT + 32
"""Starts, of which a few are left out where the step is not small enough at one of its steps."""
ALONE, TAKEN = 10**3, 10**5
"""Steps taken one at a time before the blocks, and those with which the blocks are compared."""
EACH = 48
"""Blocks in which k grows by ten."""
BLOCKS, COMPARED = 20 * EACH, 2 * EACH


class Begun(NamedTuple):
    """A descent after `ALONE` steps.

    Attributes:
        dual: grad psi(W).
        log_eta: logarithm of the step.
        small: whether Lemmas 24 and 25 hold at each of these steps.
    """

    dual: Array
    log_eta: Array
    small: Array


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _begun(data):
    p, start = data["p"], data["W"]
    tau = 0.1 * (p - 1) * plain_norm(start, p) ** (p - 2) * data["norm"]
    first = measured_step(data, start, tau)

    def step(_, state):
        W, small = state
        now = measured_step(data, W, tau, first.log_gradient)
        holds = small_enough(now.descent, now.power_growth, now.toward_w, now.rounding)
        return now.W_next, small & holds

    W, small = jax.lax.fori_loop(0, ALONE, step, (start, jnp.asarray(True)))
    return Begun(potential_gradient(W, p), jnp.log(tau) - first.log_gradient, small)


@jax.jit
@jax.vmap
def _taken(data, begun):
    """Grad psi(W) after `TAKEN` steps, each taken."""
    p, loss = data["p"], mixed_loss(data["mixture"])
    gamma = scores(data["X"], data["v"], data["y"])

    def step(_, dual):
        W = inverse_potential_gradient(dual, p)
        G, log_scale = scaled_gradient(W, data["X"], data["z"], gamma, loss)
        return dual - jnp.exp(begun.log_eta + log_scale) * G

    return jax.lax.fori_loop(ALONE, TAKEN, step, begun.dual)


def _selection(data):
    return TokenSelection(*(on_device(data[name]) for name in ("X", "y", "z", "v")))


@partial(jax.jit, static_argnums=(2, 3, 4), compiler_options=CHEAP_COMPILATION)
@partial(jax.vmap, in_axes=(0, 0, None, None, None))
def _in_blocks(data, begun, blocks, order, each):
    loss, length = mixed_loss(data["mixture"]), np.log(10) / each
    settings = {"steps": ALONE, "blocks": blocks, "length": length, "order": order}
    data, p = _selection(data), data["p"]
    return descent_blocks(data, begun.dual, begun.log_eta, p=p, loss=loss, **settings)


@jax.jit
@jax.vmap
def _apart(dual, taken, begun):
    """Distance of two ends over that of the second from the beginning."""
    return jnp.linalg.norm(dual - taken) / jnp.linalg.norm(taken - begun.dual)


_NAMES = ("X", "y", "z", "v", "W", "W_mm", "p", "mixture", "norm")


@shared
def _descents(rng):
    batch = near_the_cone(rng, DRAWN)
    begun = _begun({name: on_device(batch[name]) for name in _NAMES})
    rows = np.flatnonzero(begun.small)[:COUNT]
    batch = {name: value[rows] for name, value in batch.items()}
    begun = Begun(*(array[rows] for array in begun))
    data = {name: on_device(batch[name]) for name in _NAMES}
    path, taken = _in_blocks(data, begun, BLOCKS, 2, EACH), _taken(data, begun)
    flow = _in_blocks(data, begun, COMPARED, 1, EACH).dual[:, -1]
    fine = _in_blocks(data, begun, 2 * COMPARED, 2, 2 * EACH).dual[:, -1]
    coarse = path.dual[:, COMPARED - 1]
    clock = path.log_k + begun.log_eta[:, None]
    late = continued(_selection(data), path.W, clock, data["p"], data["mixture"])
    late = late._replace(log_time=late.log_time - np.asarray(begun.log_eta)[:, None])
    ends = {"apart": coarse, "fine_apart": fine, "flow_apart": flow}
    read = {name: np.asarray(_apart(end, taken, begun)) for name, end in ends.items()}
    read["halved"] = np.asarray(_apart(coarse, fine, begun))
    return {**read_late(late, batch), **read, "solved": solved(late)}


def descents(rng, count):
    """Descents from starts in the cone, at four scales of log k; at most 64."""
    return {name: value[:count] for name, value in _descents(rng).items()}


def blocks_are_steps(apart):
    """Whether the blocks lead where steps one at a time lead, to the order of what they leave."""
    return apart <= ALONE**-2.0


on_descents = {
    "sample": descents,
    "not_attacked": "an instance takes a descent of many steps",
    "scales": "log_k",
    "count": COUNT,
    "assumptions": [
        assume(r"$10^5$ steps taken one at a time agree with the blocks", blocks_are_steps),
        assume("each implicit step of the flow is solved", lambda solved: solved),
    ],
}


@inequality(
    "beyond the paper: blocks of steps",
    status=Status.NEW,
    sample=descents,
    count=COUNT,
    not_attacked="an instance takes a descent of many steps",
    controls=[Control("the flow in place of the descent", flow=True)],
)
def descent_in_blocks(fine_apart, flow_apart, halved, *, flow=False):
    r"""$$\frac{du}{dk} = F\!\left(u - \tfrac12 F(u)\right),\ F = -\eta\nabla\mathcal L:\quad
    \frac{\|u(k) - \nabla\psi(W(k))\|_F}{\|\nabla\psi(W(k)) - \nabla\psi(W(k_0))\|_F} \le k_0^{-2}$$

    Two terms of the modified equation, from $k_0 = 10^3$ steps on, against $10^5$ steps taken one
    at a time, up to what halving the blocks changes. It is the equation on which the other claims
    on the descent follow it further.
    """
    left = flow_apart if flow else fine_apart
    return Sides(left, jnp.full_like(left, ALONE**-2.0), error=halved)


STEPS = np.rint(TAKEN**SHARES)


@jax.jit
@jax.vmap
def _norms_of_steps(data, W, p):
    """Norms after each number of `STEPS`."""

    def until(W, steps):
        W = jax.lax.fori_loop(
            0, steps, lambda _, at: mirror_step(at, selection_gradient(at, data), 0.1, p), W
        )
        return W, plain_norm(W, p)

    return jax.lax.scan(until, W, jnp.asarray(np.diff(STEPS, prepend=0), int))[1]


def opposite_samples(rng, count):
    """The descents with the norms on two samples whose gaps are opposite."""
    batch, draw = descents(rng, count), deepcopy(rng)
    number = len(batch["p"])
    half = gaussian_selections(draw, number, 1, 2, 3)
    X = jnp.concatenate([half.X, -half.X], axis=1)
    y = jnp.concatenate([half.y, -half.y], axis=1)
    data = TokenSelection(X, y, jnp.repeat(half.z, 2, axis=1), half.v)
    start = jnp.asarray(draw.normal(size=(number, 3, 3)))
    norms = np.asarray(_norms_of_steps(data, start, on_device(batch["p"])))
    return {**batch, "norm_by_time": norms, "log_k": np.tile(np.log(STEPS), (number, 1))}


@limit(
    "Norm-divergence theorem, on the descent",
    Source.RECALLED,
    controls=[
        Control("two samples with opposite features and equal gaps", sample=opposite_samples)
    ],
    **on_descents,
)
def norm_divergence_descent(norm_by_time):
    r"""$$W(0)\in C_{p,\mu',R} \;\Rightarrow\; \lim_{k\to\infty}\|W(k)\|_{p,p}=\infty$$

    $1/\|W(k)\|_{p,p}$ against $\log k$ on descents of one constant step, one or three samples,
    mixtures of four losses, $p$ from 1.5 to 4, $\mu'=\mu_0$ and $R=R_\delta$. The step is small
    enough: Lemmas 24 and 25 hold at each of the first thousand steps.
    """
    return 1 / norm_by_time, jnp.zeros_like(norm_by_time)


@limit(
    "Direction theorem, on the descent",
    Source.RECALLED,
    controls=[Control("the multipliers of the SVM under the potential of another $p$", other=True)],
    **on_descents,
)
def direction_descent(divergence, other_divergence, *, other=False):
    r"""$$\lim_{k\to\infty} D_\psi\!\left(\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}},
    \frac{W(k)}{\|W(k)\|_{p,p}}\right)=0$$

    The descents of norm-divergence-descent, one or three samples of four tokens.
    """
    divergence = other_divergence if other else divergence
    return divergence, jnp.zeros_like(divergence)


@rate(
    "Rate theorem, on the descent",
    Source.RECALLED,
    controls=[Control(r"decay as $(\log k)^{-5/2}$", faster=True)],
    **on_descents,
)
def rate_descent(divergence, log_k, p, *, faster=False):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log\log k}{\log k}\right)\ (p>2),\quad
    O\!\left(\frac{(\log\log k)^2}{\log k}\right)\ (p=2),\quad
    O\!\left(\frac{1}{(\log k)^{p-1}}\right)\ (1<p<2)$$

    The descents of direction-descent.
    """
    return divergence, log_k**-2.5 if faster else envelope(log_k, p)
