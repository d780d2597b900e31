r"""The proof of Theorem 1 with every constant, link by link: docs/proofs/liu2021_sample_size.md.

z stands for x o f(x), of norm at most C_x; B = C_1 max ||z|| bounds the features. The bounds of
the features themselves are the first two links, in `feature_norms`; sizes of covers are in
`lemma_1_2_cover`, the step from the gradient to the error is in `theorem_1_points`.
"""

import math
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.generalisation.liu2021_corrected import Block, Conditions, liu2021_sample_size
from attlas.claims.liu2021analyzing.stationary_runs import features
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.models.networks.rectifier import rectify

_PAPER = "liu2021analyzing"
_CHAIN = f"{_PAPER}/theorem-1"
_P, _D = 4, 3
_CENTRES, _SAMPLES, _ATOMS = 20, 100, 24
_FAILURE = 0.2


def _pairs(key: PRNGKeyArray, count: int) -> Instance:
    """A teacher and two students; in every other instance both layers shrink towards zero."""
    draws = generator(key)
    z = np.abs(draws.normal(size=(count, _P)))
    W, W_t = draws.normal(size=(2, count, _P, _D))
    w, w_t = draws.normal(size=(2, count, _D))
    rho = 10 ** draws.uniform(-4, -0.3, count)
    W_n = W + rho[:, None, None] * draws.normal(size=W.shape)
    w_n = w + rho[:, None] * draws.normal(size=w.shape)
    even = slice(None, None, 2)
    W[even] = W_t[even] = z[even, :, None] * np.ones((1, 1, _D))
    w[even], w_t[even] = 1.0, -1.0
    W_n[even], w_n[even] = (1 - rho[even, None, None]) * W[even], (1 - rho[even, None]) * w[even]
    parts = {"z": z, "W": W, "w": w, "W_n": W_n, "w_n": w_n, "W_t": W_t, "w_t": w_t}
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _gradient(instance: Instance, name: str) -> Array:
    z = instance["z"]
    phi = rectify(z @ instance[f"W{name}"])
    u = phi @ instance[f"w{name}"] - rectify(z @ instance["W_t"]) @ instance["w_t"]
    return u * phi


def _lipschitz(instance: Instance, factor: float = 4.0) -> Sides:
    norm = jnp.linalg.norm
    C_1 = jnp.stack([norm(instance[name]) for name in ("W", "W_n", "W_t")]).max()
    C_2 = jnp.stack([norm(instance[name]) for name in ("w", "w_n", "w_t")]).max()
    moved = norm(instance["W"] - instance["W_n"]) / C_1, norm(instance["w"] - instance["w_n"]) / C_2
    size = C_2 * (C_1 * norm(instance["z"])) ** 2
    gap = norm(_gradient(instance, "") - _gradient(instance, "_n"))
    return Sides(gap, factor * size * jnp.maximum(*moved), scale=size)


def _deviations(key: PRNGKeyArray, count: int) -> Instance:
    """Largest distance of a sample's mean of u Phi from the population's, over random centres."""
    draws = generator(key)
    largest, bound, mean = np.empty((3, count))
    for place in range(count):
        z = draws.normal(size=(_ATOMS, _P))
        target = features(z, draws.normal(size=(_P, _D))) @ draws.normal(size=_D)
        drawn = draws.multinomial(_SAMPLES, np.full(_ATOMS, 1 / _ATOMS)) / _SAMPLES
        W = draws.normal(size=(_CENTRES, _P, _D))
        phi = features(z[None], W)
        u = np.einsum("cad,cd->ca", phi, draws.normal(size=(_CENTRES, _D))) - target[None]
        v = u[:, :, None] * phi
        gaps = np.linalg.norm(np.einsum("a,cad->cd", drawn - 1 / _ATOMS, v), axis=1)
        norms = np.linalg.norm(v, axis=2)
        largest[place], bound[place], mean[place] = gaps.max(), norms.max(), norms.mean()
    parts = {"largest": largest, "bound": bound, "mean": mean}
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _radius(instance: Instance) -> Sides:
    """What the union bound allows: 2 N exp(-n r^2 / 8 V^2) = delta."""
    return _within(instance, math.sqrt(8 * math.log(2 * _CENTRES / _FAILURE)) * instance["bound"])


def _one_centre(instance: Instance) -> Sides:
    """The mean norm in place of the largest, and no logarithm."""
    return _within(instance, instance["mean"])


def _within(instance: Instance, spread: Array) -> Sides:
    inside = instance["largest"] <= spread / math.sqrt(_SAMPLES)
    one = jnp.ones_like(spread)
    return Sides(jnp.where(inside, one, 0.0), (1 - _FAILURE) * one)


def _sizes(key: PRNGKeyArray, count: int) -> Instance:
    """Numbers of the theorem, from easy to hard, with the sample size of the bound."""
    draws = generator(key)
    rows = []
    for _ in range(count):
        B, C_2, noise, gamma = 10 ** draws.uniform(-1, 1, 4)
        d, parameters = int(draws.integers(1, 20)), int(draws.integers(1, 1000))
        smallest, failure = B**2 * draws.uniform(0.01, 1), draws.uniform(0.01, 0.3)
        level, M = smallest * gamma**2, max(2 * C_2 * B**2, noise * B)
        rho = min(1.0, math.sqrt(level) / (16 * M))
        known = Conditions(smallest, 0.0, noise, failure)
        n = liu2021_sample_size(B, C_2, d, [Block(parameters)], gamma, known)
        entropy = (d + parameters) * math.log(3 / rho)
        rows.append((n, entropy, level / (128 * M**2), failure))
    names = ("n", "entropy", "exponent", "failure")
    columns = np.array(rows).T
    return {name: jnp.asarray(column) for name, column in zip(names, columns, strict=True)}


def _failure(instance: Instance, spread: bool = True) -> Sides:
    """The failures added up; without the spread n is a count of log N alone."""
    entropy, exponent, failure = (instance[k] for k in ("entropy", "exponent", "failure"))
    n = instance["n"] if spread else entropy + jnp.log(4 / failure)
    # Beyond one it is no probability, and would overflow.
    capped = jnp.minimum(entropy - n * exponent, 1.0)
    noise = jnp.exp(jnp.minimum(0.5 + entropy - 2 * n * exponent, 1.0))
    left = 2 * jnp.exp(capped) + noise + jnp.exp(-n / 2)
    # The exponents cancel down to log(4 / delta): their rounding multiplies the left side.
    return Sides(left, failure, scale=failure * (1 + entropy))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "provenance": Provenance.DERIVED,
}

LIPSCHITZ = Claim(
    name=f"{_PAPER}/theorem-1-lipschitz",
    locator="Theorem 1, the gradient between points of the cover",
    statement=(
        r"\|W - W'\|_F \le \rho C_1,\ \|w - w'\|_2 \le \rho C_2 \quad \Rightarrow \quad "
        r"\|u \Phi - u' \Phi'\|_2 \le 4 C_2 B^2 \rho"
    ),
    status=Status.CORRECTED,
    instances=_pairs,
    sides=_lipschitz,
    control=Control("3 in place of 4", sides=partial(_lipschitz, factor=3.0)),
    ledger=Link(_CHAIN, 3),
    note=(
        "Approached as rho goes to zero, both layers shrinking and the teacher of opposite sign. "
        "The paper takes one epsilon for two balls of different radii. The claims lemma-1-2-* "
        "have the same with a mask as third block."
    ),
    **_COMMON,
)

UNION = Claim(
    name=f"{_PAPER}/theorem-1-union",
    locator="Theorem 1, all centres at once",
    statement=(
        r"P\left( \max_{j \le N} \left\| \tfrac1n \sum_i v_i^{(j)} - E v^{(j)} \right\|_2"
        r"\le V \sqrt{\tfrac8n \log \tfrac{2N}{\delta}} \right) \ge 1 - \delta"
    ),
    **{**_COMMON, "kind": Kind.PROBABILITY},
    status=Status.RECONSTRUCTED,
    instances=_deviations,
    sides=_radius,
    control=Control("the mean of ||v|| / sqrt(n), no logarithm", sides=_one_centre),
    ledger=Link(_CHAIN, 4),
    note=(
        "20 random networks, 100 draws from 24 inputs, delta = .2. V bounds ||v||, twice V the "
        "centred vectors; the deviations are far below what is allowed, for V is the largest "
        "norm and not a standard deviation. A fourth of the radius is not noticed."
    ),
)

SIZE = Claim(
    name=f"{_PAPER}/theorem-1-size",
    locator="Theorem 1, the sample size",
    statement=(
        r"a = \frac{n \lambda \gamma^2}{128 M^2} \ge \log \frac{4 N}{\delta} \quad "
        r"\Rightarrow \quad "
        r"N \left( 2 e^{-a} + \sqrt{e}\, e^{-2a} \right) + e^{-n/2} \le \delta"
    ),
    status=Status.CORRECTED,
    instances=_sizes,
    sides=_failure,
    control=Control("log N samples, as Theorem 3 prints it", sides=partial(_failure, spread=False)),
    ledger=Link(_CHAIN, 5),
    terms=256,
    note=(
        "Little more than half of delta: the mean of u Phi at the centres takes half, the noise "
        "and its spread vanish, so that log(4 N / delta) might be log((2 + o(1)) N / delta). With "
        "log N samples alone the sum is no probability."
    ),
    **_COMMON,
)
