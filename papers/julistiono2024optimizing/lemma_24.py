r"""Lemmas 24 and 25: descent of psi - eta L and of the loss, and the step size they need.

The lemmas hold for "eta small enough". How small depends on the data, and outside the cone on
W(k): inside it see lemma-24-in-the-cone. Here it is a condition on the step that can be evaluated.
With m = max(p, q), q = p/(p-1), and beta a Lipschitz constant of the gradient (Frobenius norm), it
suffices that

    (m-1) beta ||W(k+1) - W(k)||_F^2 <= -<grad L(W(k)), W(k+1) - W(k)>,

which is eta <= 1 / beta for p = 2. The links: D_L(W+, W) <= beta/2 ||W+ - W||_F^2;
D_psi(W+, W) >= <grad psi(W+) - grad psi(W), W+ - W> / (2 (m-1)).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.statement import identity, inequality
from attlas.data.token_selection import TokenSelection, token_scores
from attlas.optim.mirror_descent import bregman, mirror_step, potential, potential_gradient
from julistiono2024optimizing.cone_instances import mixed_loss, slopes
from julistiono2024optimizing.instances import (
    EXPONENTS,
    ROUNDINGS,
    condition,
    on_trajectory,
)
from julistiono2024optimizing.library.token_selection.gradient import (
    selection_gradient,
    selection_loss,
)

_DOUBLINGS = 64


def smoothness_constant(data, mixture, attention=1.0):
    r"""A Lipschitz constant beta of the gradient of the risk, Frobenius norm.

    With the score range R_i and the token diameter A_i = max ||X_it - X_ir||_2 ||z_i||_2:
    beta = mean_i A_i^2 (S_i R_i / 4 + B_i R_i^2 / 16), from |l'| <= S_i and |l''| <= B_i on the
    scores, a covariance of at most R_i A_i / 4 and a variance of at most A_i^2 / 4 (Popoviciu).
    """
    X, scores = data.X, token_scores(data)
    low, high = jnp.min(scores, axis=1), jnp.max(scores, axis=1)
    spread, zero = high - low, jnp.zeros_like(low)
    steep = mixture @ jnp.max(slopes(jnp.stack([low, jnp.clip(0, low, high)])), axis=1)
    # The second derivative of the sigmoid loss is largest where sigmoid(u) = (3 - sqrt(3)) / 6.
    bounds = [zero + 1 / 4, jnp.exp(-low), zero, zero + 3**-1.5 / 2]
    bend = mixture @ jnp.stack(bounds)
    pairs = jnp.sum(jnp.square(X[:, :, None] - X[:, None, :]), axis=-1)
    diameter = jnp.max(pairs, axis=(1, 2)) * jnp.sum(jnp.square(data.z), axis=1)
    return jnp.mean(diameter * (attention * steep * spread / 4 + bend * spread**2 / 16))


def largest_step(data, mixture, W, p, slope):
    r"""A step that meets the condition, and whose double does not; frozen for derivatives.

    The condition holds if no entry moves further than Euclidean gradient descent with step
    c = 1 / ((m-1) beta) would move it, a closed form; from there the step is doubled.
    """
    weight = (jnp.maximum(p, p / (p - 1)) - 1) * smoothness_constant(data, mixture)
    moved = potential_gradient(W - slope / weight, p) - potential_gradient(W, p)
    size = jnp.where(slope == 0, 1, jnp.abs(slope))
    first = jnp.min(jnp.where(slope == 0, jnp.inf, jnp.abs(moved) / size))
    # Far out the gradient underflows, and no step is defined by it.
    first = jnp.where(jnp.isfinite(first), first, 0)
    steps = first * 2.0 ** jnp.arange(_DOUBLINGS, dtype=W.dtype)

    def meets(eta):
        change = mirror_step(W, slope, eta, p) - W
        return weight * jnp.sum(jnp.square(change)) <= -jnp.sum(slope * change)

    too_far = jnp.argmin(jax.vmap(meets)(steps[1:]))
    return jax.lax.stop_gradient(steps[too_far])


on_data = partial(inequality, search_over=("W", "X", "v"), roundings=ROUNDINGS)


@on_data(
    "Lemma 24, with a step condition",
    status=Status.CORRECTED,
    sample=on_trajectory,
    controls=[Control("a step 1000 times larger", factor=1e3)],
    proof_step=ProofStep("Lemma 24", 3),
)
def lemma_24(X, y, z, v, W, p, mixture, *, factor=1.0):
    r"""$$\frac{p-1}{p} (\|W(k+1)\|^p - \|W(k)\|^p)
    + \eta (\mathcal{L}(W(k+1)) - \mathcal{L}(W(k)))
    \le \langle -\eta\nabla\mathcal{L}(W(k)), W(k) \rangle, \quad\text{if }
    (\max(p,q)-1)\, \beta\, \|W(k+1) - W(k)\|_F^2
    \le -\langle \nabla\mathcal{L}(W(k)), W(k+1) - W(k) \rangle$$

    Evaluated as $\eta D_{\mathcal{L}}(W(k+1), W(k)) \le D_\psi(W(k+1), W(k))$, which is the same
    inequality, at the largest step that the condition allows, for mixtures of four losses.
    """
    data, loss = TokenSelection(X, y, z, v), mixed_loss(mixture)
    slope = selection_gradient(W, data, loss)
    eta = factor * largest_step(data, mixture, W, p, slope)
    after = mirror_step(W, slope, eta, p)
    now, then = selection_loss(W, data, loss), selection_loss(after, data, loss)
    magnitude = (jnp.abs(now) + jnp.abs(then)) * condition(X, z, jnp.abs(W) + jnp.abs(after))
    magnitude = eta * (magnitude + jnp.sum(jnp.abs(slope) * (jnp.abs(after) + jnp.abs(W))))
    left = eta * (then - now - jnp.sum(slope * (after - W)))
    return Sides(left, bregman(after, W, p), magnitude=magnitude)


@on_data(
    "Lemma 25, with a step condition",
    status=Status.CORRECTED,
    sample=on_trajectory,
    controls=[Control("a step 1000 times larger", factor=1e3)],
)
def lemma_25(X, y, z, v, W, p, mixture, *, factor=1.0):
    r"""$$\mathcal{L}(W(k+1)) - \mathcal{L}(W(k)) \le
    \tfrac12 \langle \nabla\mathcal{L}(W(k)), W(k+1) - W(k) \rangle \le 0, \quad\text{if }
    (\max(p,q)-1)\, \beta\, \|W(k+1) - W(k)\|_F^2
    \le -\langle \nabla\mathcal{L}(W(k)), W(k+1) - W(k) \rangle$$

    The text of Lemma 25 is lost; descent of the loss is what its citation needs. Shown as half the
    first-order decrease against the decrease of the loss, for mixtures of four losses.
    """
    data, loss = TokenSelection(X, y, z, v), mixed_loss(mixture)
    slope = selection_gradient(W, data, loss)
    after = mirror_step(W, slope, factor * largest_step(data, mixture, W, p, slope), p)
    now, then = selection_loss(W, data, loss), selection_loss(after, data, loss)
    # Half of the first-order decrease is what the condition guarantees.
    promised = jnp.sum(slope * (after - W)) / 2
    size = jnp.abs(now) + jnp.abs(then) + jnp.abs(promised)
    rounded = condition(X, z, jnp.abs(W) + jnp.abs(after))
    return Sides(-promised, now - then, magnitude=rounded * size)


def with_second_points(rng, count):
    """Points of trajectories with a second point at a distance of 0.01 to 10."""
    batch = on_trajectory(rng, count)
    # With small scores the first term of beta is the larger one.
    v = np.where(np.arange(count)[:, None] % 2 == 0, 0.01 * batch["v"], batch["v"])
    size = 10 ** rng.uniform(-2, 1, size=(count, 1, 1))
    return {**batch, "v": v, "V": batch["W"] + size * rng.normal(size=batch["W"].shape)}


@inequality(
    "Lemma 24, smoothness of the risk",
    status=Status.NEW,
    sample=with_second_points,
    search_over=("W", "V", "X", "v"),
    controls=[Control("without $R_i / 4$, the softmax's curvature", attention=0.0)],
    roundings=ROUNDINGS,
    proof_step=ProofStep("Lemma 24", 1),
)
def smoothness(X, y, z, v, W, V, mixture, *, attention=1.0):
    r"""$$D_{\mathcal{L}}(V, W) \le \frac{\beta}{2} \|V - W\|_F^2,\quad \beta =
    \frac1n \sum_i A_i^2 \big(\tfrac{S_iR_i}{4} + \tfrac{B_iR_i^2}{16}\big)$$

    $R_i$ is the range of a sample's scores, on which $|\ell'| \le S_i$ and $|\ell''| \le B_i$, and
    $A_i$ its token diameter times the query's length; mixtures of four losses.
    """
    data, loss = TokenSelection(X, y, z, v), mixed_loss(mixture)
    slope = selection_gradient(W, data, loss)
    now, then = selection_loss(W, data, loss), selection_loss(V, data, loss)
    magnitude = (jnp.abs(now) + jnp.abs(then)) * condition(X, z, jnp.abs(W) + jnp.abs(V))
    magnitude = magnitude + jnp.sum(jnp.abs(slope) * (jnp.abs(V) + jnp.abs(W)))
    bound = smoothness_constant(data, mixture, attention) / 2 * jnp.sum(jnp.square(V - W))
    return Sides(then - now - jnp.sum(slope * (V - W)), bound, magnitude=magnitude)


def scalars(rng, count):
    """Gaussian pairs; those with one zero, and opposite ones, are where the share is small."""
    x, y = rng.normal(size=(2, count))
    y = np.where(np.arange(count) % 4 == 1, 0.0, y)
    x, y = np.where(np.arange(count) % 4 == 2, (0 * x, y), (x, y))
    return {"x": x, "y": y, "p": rng.choice(EXPONENTS, size=count)}


@inequality(
    "Lemma 24, share of the divergence",
    status=Status.NEW,
    sample=scalars,
    search_over=("x", "y"),
    controls=[Control("one half for every $p$", half=True)],
    proof_step=ProofStep("Lemma 24", 2),
)
def mirror_share(x, y, p, *, half=False):
    r"""$$D_\psi(x, y) \ge \frac{1}{2(\max(p,q)-1)} (\nabla\psi(x) - \nabla\psi(y))(x - y)$$

    An equality at $p = 2$; entry by entry it bounds the divergence of matrices.
    """
    m = jnp.maximum(p, p / (p - 1))
    product = (potential_gradient(x, p) - potential_gradient(y, p)) * (x - y)
    share = 1 / 2 if half else 1 / (2 * (m - 1))
    magnitude = potential(x, p) + potential(y, p) + jnp.abs(product)
    magnitude = magnitude + jnp.abs(y) ** (p - 1) * (jnp.abs(x) + jnp.abs(y))
    return Sides(share * product, bregman(x, y, p), magnitude=magnitude)


def scaled_queries(rng, count):
    """Points of trajectories, and a factor of 0.5 to 4 for the queries."""
    return {**on_trajectory(rng, count), "s": rng.uniform(0.5, 4.0, size=count)}


@identity(
    "Lemma 24, scaling of the step",
    status=Status.NEW,
    sample=scaled_queries,
    controls=[Control("$s^{p-1}$ in place of $s^p$", drop=1.0)],
    roundings=ROUNDINGS,
)
def step_scaling(X, y, z, v, W, p, eta, s, *, drop=0.0):
    r"""$$\text{queries } s z_i,\ W(k)/s,\ \text{step } \eta \ \Longrightarrow\ W(k+1)/s,
    \ \text{where } W(k+1) \text{ takes queries } z_i \text{ and step } s^p \eta$$

    Any threshold on the step therefore scales exactly as $s^{-p}$ in the size of the queries: no
    constant serves all data. Measured from $W(0) = 0$ on unit-sphere data ($n = 6$, $T = 8$,
    $d = 10$, 40 draws) the median largest step that keeps Lemma 24 is 316, 178, 56 for
    $p = 2, 3, 4$, and 0.018, 1.8e-4, 1e-6 when tokens and queries are both 6 times larger.
    """
    scaled = selection_gradient(W / s, TokenSelection(X, y, s * z, v))
    slope = selection_gradient(W, TokenSelection(X, y, z, v))
    small = mirror_step(W / s, scaled, eta, p)
    large = mirror_step(W, slope, eta * s ** (p - drop), p) / s
    # Mirror variables are compared: there the step is a sum, whose rounding is known.
    terms = jnp.abs(potential_gradient(W / s, p)) + jnp.abs(eta * scaled)
    return Sides(
        potential_gradient(small, p),
        potential_gradient(large, p),
        magnitude=jnp.sum(terms) * condition(X, z, W),
    )
