r"""Printed formulas of the library against a second transcription from the paper's text."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from attlas.bounds.optimisation.julistiono2024_cone import (
    julistiono2024_mu_0,
    julistiono2024_radius,
)
from attlas.claims.claim import Control, Kind, Sides, Source
from attlas.claims.statement import computed, identity
from attlas.data.token_selection import TokenSelection
from julistiono2024optimizing.cone_instances import cone_points
from julistiono2024optimizing.instances import EXPONENTS
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry
from julistiono2024optimizing.library.token_selection.julistiono2024_rate import julistiono2024_rate


def _ratio(p):
    """The s > 1 with s^{p-1} = (p-1) s + (p-2)."""
    return brentq(lambda s: s ** (p - 1) - (p - 1) * s - p + 2, 1.0, 9.0, xtol=1e-15)


@computed(
    Kind.IDENTITY,
    "(8), Lemma 20 and (28)",
    Source.RECALLED,
    controls=[
        Control("(8) without the power of $d$", power=0.0),
        Control("the sharpened width with $p$ in place of $p - 1$", drop=0.0),
        Control(r"$R_\delta$ without $1/\delta$", exponent=0.0),
        Control(r"$T$ in place of $T^2$", tokens=1),
        Control(r"one logarithm at $p = 2$", logs=1),
    ],
)
def printed_formulas(rng, count, *, power=1.0, drop=1.0, exponent=1.0, tokens=2, logs=2):
    r"""$$\mu_0=\tfrac1p\Big(\tfrac{\delta}{8A}\Big)^p\ (p\ge2),\quad
    \mu_0=\tfrac1p\Big(\tfrac{\delta(p-1)}{4A\,d^{2/p-1}}\Big)^2\ (1<p<2),\quad
    R_\delta=\tfrac{\|W_{mm}\|_{p,p}}{\delta}\log\tfrac{T^2\Gamma A}{\gamma_{gap}}$$

    With the sharpened width of lemma-19-wider-cone and the rates of (28); $2 \le d, T \le 9$,
    computed by the library and by formulas written from the text.
    """
    d, T = rng.integers(2, 10, size=(2, count)).astype(float)
    p = rng.choice(EXPONENTS, count)
    delta, A = rng.uniform(0.01, 0.25, count), rng.uniform(0.5, 5.0, count)
    norm, gap, spread = rng.uniform(0.5, 2.0, size=(3, count))
    low = (delta * (p - 1) / (4 * A * d ** (power * (2 / p - 1)))) ** 2
    printed = np.where(p < 2, low, (delta / (8 * A)) ** p) / p
    # The ratio at which the scalar divergence over |x - y|^p is least, written out at x = -s.
    s = np.array([_ratio(exponent) if exponent > 2 else 1.0 for exponent in p])
    least = (s**p - 1 + p * (s + 1)) / (p * (1 + s) ** p)
    sharp = np.where(p > 2, least, (p - drop) / 2) * (delta / (4 * A)) ** np.maximum(p, 2)
    radius = norm / delta**exponent * np.log(T**tokens * spread * A / gap)
    args = [jnp.asarray(a) for a in (delta, A, p, d)]
    found: list[Any] = [
        jax.vmap(lambda *a, c=c: julistiono2024_mu_0(*a, constants=c))(*args)
        for c in ("printed", "sharp")
    ]
    sizes = zip(norm, delta, A, spread, gap, T, strict=True)
    found.append(np.array([julistiono2024_radius(*each) for each in sizes]))
    x = 10 ** rng.uniform(0.5, 4, count)
    rates = [julistiono2024_rate(*each) for each in zip(x[:, None], p, strict=True)]
    found.append(np.concatenate(rates))
    slow = np.log(x) ** np.where(p == 2, logs, 1) / x
    rate = np.where(p < 2, x ** (1 - p), slow)
    ours = [printed, sharp, np.maximum(radius, 0), rate]
    return np.stack(found, axis=1), np.stack(ours, axis=1)


@identity(
    "Section 3, constants of a selection",
    Source.RECALLED,
    sample=partial(cone_points, tokens=6),
    controls=[
        Control(r"$\delta = \delta'/2$", parts=2.0),
        Control("$A$ without the norm of $W_{mm}$", whole=0.0),
        Control("the norm of exponent $q$", dual=True),
        Control(r"$\gamma_{gap}$ over all tokens", others=True),
        Control("the range of scores halved", share=0.5),
    ],
    roundings=1024,
)
def selection_constants(
    X, z, v, y, p, W_mm, beyond, *, parts=4.0, whole=1.0, dual=False, others=False, share=1.0
):
    r"""$$\delta=\min\{\tfrac14,\tfrac{\delta'}4\},\
    \delta'=\min_{i,t\in\mathcal T_i,\tau\in\bar{\mathcal T}_i}(X_{it}-X_{i\tau})^\top W_{mm}z_i,\
    A=\|W_{mm}\|_{p,p}\max_{it}\|X_{it}z_i^\top\|_{q,q},\ \Gamma=\max_{it\tau}|\gamma_{it}
    -\gamma_{i\tau}|,\ \gamma_{gap}=\min_{i,t\in\mathcal T_i}(\gamma_{i\alpha_i}-\gamma_{it})$$

    The library's numbers of a solved selection against loops over pairs of tokens.
    """
    found = selection_geometry(TokenSelection(X, y, z, v), jnp.zeros(len(X), int), W_mm, p)
    h, q = jnp.einsum("ntd,de,ne->nt", X, W_mm, z), p / (p - 1)
    gamma = y[:, None] * jnp.einsum("ntd,d->nt", X, v)
    pairs = jnp.where(~beyond[:, :, None] & beyond[:, None], h[:, 1:, None] - h[:, None, 1:], 9.0)
    exponent = q if dual else p
    norm = jnp.sum(jnp.abs(W_mm) ** exponent) ** (1 / exponent)
    outer = jnp.abs(X[..., None] * z[:, None, None, :]) ** q
    gains = jnp.where(beyond & (not others), jnp.inf, gamma[:, :1] - gamma[:, 1:])
    ours = (
        jnp.minimum(0.25, jnp.min(pairs) / parts),
        norm**whole * jnp.max(jnp.sum(outer, axis=(2, 3))) ** (1 / q),
        norm,
        share * jnp.max(jnp.abs(gamma[:, :, None] - gamma[:, None])),
        jnp.min(gains),
    )
    left = found.delta, found.A, found.norm, found.score_range, found.score_gap
    # Gaps of size one and score differences are rounded with the terms that cancel in them.
    size = jnp.max(jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W_mm), jnp.abs(z)))
    scale = jnp.max(jnp.einsum("ntd,d->nt", jnp.abs(X), jnp.abs(v)))
    return Sides(
        jnp.stack(left),
        jnp.stack(ours),
        magnitude=jnp.stack([size, ours[1], norm, scale, scale]),
    )
