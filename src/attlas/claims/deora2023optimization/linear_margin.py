r"""Appendix F: the margin gamma_lin of a linear model <U, X> on the tokenized mixture.

U = 1 u_star' / (S sqrt(2 T)) has Frobenius norm 1. It is the best linear model when relevant
tokens may stand anywhere, by symmetry: the average of the best U over permutations of tokens,
of irrelevant patterns and exchange of the labels is as good.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_mixture import deora2023_gamma_linear
from attlas.claims.deora2023optimization.mixture_instances import (
    ROUNDINGS,
    TOKENS,
    inside_the_noise,
    radius,
    tokens,
)
from attlas.claims.deora2023optimization.ntk_w_part import single_samples, u_part
from attlas.core.generator import seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.solvers.kernel_svm import kernel_svm_batch

_PAPER = "deora2023optimization"
_T = 3
_SIZE = 96
"""Samples of a complete data set of three tokens: smaller ones are repeated."""


def _reached(instance: Instance, noise: float) -> Sides:
    S, zeta, Z_mu = instance["S"], instance["zeta"], noise * instance["Z_mu"]
    bound = deora2023_gamma_linear(TOKENS, S, zeta, Z_mu)
    # At W = 0 the derivative in U along U_star is the linear model.
    margin = instance["y"] * u_part(instance, tokens(instance))
    return Sides(bound, margin, scale=TOKENS**0.5 * radius(instance))


GAMMA_LINEAR = Claim(
    name=f"{_PAPER}/gamma-linear",
    paper=_PAPER,
    locator="Appendix F and last term of (7)",
    statement=(
        r"y \langle \tfrac{1}{S \sqrt{2T}} 1_T u_\star^\top, X \rangle = y \langle \nabla_U"
        r"\Phi(X; U, 0), \overline{U}_\star \rangle \ge \gamma_{lin} = \tfrac{S \sqrt T}{\sqrt 2}"
        r"\big( \zeta - 2 (1-\zeta) \tfrac{Z_\mu}{S^2} \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=single_samples,
    sides=lambda i: _reached(i, 1.0),
    free=("noise",),
    domain=inside_the_noise,
    control=Control("Z_mu without the factor 2", lambda i: _reached(i, 0.5)),
    terms=ROUNDINGS,
    note="Reached at a corner of the noise, and by every sample without noise.",
    ledger=Link("Proposition 2, P3", 3),
)


def _complete(M: int, relevant: int, noise: float, fixed: bool) -> tuple[np.ndarray, np.ndarray]:
    """All samples in coordinates (mu_+, mu_-, nu_1..) over S; noise Z_mu / S^2 at all corners."""
    corners = list(product((-noise, noise), repeat=2)) if noise else [(0.0, 0.0)]
    places = [[(r + k) % _T for k in range(relevant)] for r in range(1 if fixed else _T)]
    samples, labels = [], []
    for label, place in product((0, 1), places):
        rest = [t for t in range(_T) if t not in place]
        for picks in product(product(range(M), corners), repeat=len(rest)):
            X = np.zeros((_T, 4))
            X[place, label] = 1
            for t, (j, corner) in zip(rest, picks, strict=True):
                X[t, :2] = corner
                X[t, 2 + j] = 1
            samples.append(X)
            labels.append(1.0 - 2 * label)
    repeats = np.arange(_SIZE) % len(labels)
    return np.array(samples)[repeats], np.array(labels)[repeats]


@cache
def _solved(seed: tuple[int, ...], count: int, fixed: bool) -> dict[str, np.ndarray]:
    """Best linear margins of complete data sets with one or two irrelevant patterns."""
    rng = np.random.default_rng(list(seed))
    S = np.exp(rng.uniform(np.log(0.5), np.log(5.0), count))
    kinds = [(1, 1, True), (2, 2, True), (1, 2, True), (2, 1, False)]
    chosen = [kinds[i % 4] for i in range(count)]
    noise = np.array([kind[2] for kind in chosen]) * rng.uniform(0.01, 0.125, count)
    sets = [
        _complete(M, relevant, share, fixed)
        for (M, relevant, _), share in zip(chosen, noise, strict=True)
    ]
    X = np.stack([X for X, _ in sets]) * S[:, None, None, None]
    y = np.stack([y for _, y in sets])
    flat = X.reshape(count, _SIZE, -1)
    found = kernel_svm_batch(flat @ flat.transpose(0, 2, 1), y)
    return {
        "S": S,
        "zeta": np.array([relevant / _T for _, relevant, _ in chosen]),
        "Z_mu": noise * S**2,
        "margin": np.asarray(found.value),
        "gap": found.certificate["upper"] - found.certificate["lower"],
        "certified": np.asarray(found.converged),
    }


def _anywhere(key: PRNGKeyArray, count: int) -> Instance:
    seed = tuple(np.asarray(jax.random.key_data(key)).tolist())
    return {name: jnp.asarray(value) for name, value in _solved(seed, count, False).items()}


def _in_place(key: PRNGKeyArray, count: int) -> Instance:
    seed = seed_of(key)
    return {name: jnp.asarray(value) for name, value in _solved(seed, count, True).items()}


def _compare(instance: Instance, value: Array) -> Sides:
    # The solver's two bounds enclose the margin of a Gram matrix rounded to eps n S^2 T.
    return Sides(instance["margin"], value, scale=_T * instance["S"], error=2 * instance["gap"])


def _formula(instance: Instance) -> Array:
    return deora2023_gamma_linear(_T, instance["S"], instance["zeta"], instance["Z_mu"])


_CERTIFIED = Assumption("certified by the solver", lambda i: i["certified"])

GAMMA_LINEAR_OPTIMAL = Claim(
    name=f"{_PAPER}/gamma-linear-optimal",
    paper=_PAPER,
    locator="Appendix F, against the best linear model",
    statement=(
        r"\max_{\|U\|_F = 1} \min_i y_i \langle U, X_i \rangle = \tfrac{S \sqrt T}{\sqrt 2}"
        r"\big( \zeta - 2 (1-\zeta) \tfrac{Z_\mu}{S^2} \big)"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_anywhere,
    sides=lambda i: _compare(i, _formula(i)),
    control=Control(
        "the value for relevant tokens that stand at the same places in all samples",
        lambda i: _compare(i, i["S"] * jnp.sqrt(_T * i["zeta"] / 2)),
    ),
    assumptions=(_CERTIFIED,),
    count=32,
    terms=_SIZE * ROUNDINGS,
    note=(
        "All samples of T = 3 tokens are in the data: each label, place of the relevant tokens, "
        "pattern and corner of the noise along mu. So gamma_lin is the best linear margin, not "
        "only a bound."
    ),
)

GAMMA_LINEAR_IN_PLACE = Claim(
    name=f"{_PAPER}/gamma-linear-in-place",
    paper=_PAPER,
    locator="Appendix F, for relevant tokens at fixed places",
    statement=(
        r"\mathcal{R}_i = \mathcal{R}: \quad \max_{\|U\|_F = 1} \min_i y_i \langle U, X_i \rangle ="
        r"S \sqrt{\tfrac{\zeta T}{2}} > \gamma_{lin}"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_in_place,
    sides=lambda i: _compare(i, i["S"] * jnp.sqrt(_T * i["zeta"] / 2)),
    control=Control("gamma_lin", lambda i: _compare(i, _formula(i))),
    assumptions=(_CERTIFIED,),
    count=32,
    terms=_SIZE * ROUNDINGS,
    note=(
        "(DM1) leaves open whether the relevant set varies. If it does not, a linear model reads "
        "the relevant tokens alone: its margin is larger by 1/sqrt(zeta) and blind to the noise."
    ),
)
