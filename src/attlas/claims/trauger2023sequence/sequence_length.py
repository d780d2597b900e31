r"""Independence of the sequence length: measured complexities and the bounds at equal norms.

Tokens come from an alphabet of five vectors, so that a sequence of T tokens is a vector of five
counts and T = 10 ... 10^4 costs the same; all sign vectors and a finite class make suprema exact.
"""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.edelman2022_cover import edelman2022_cover, perceptron_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket, trauger2023_single
from attlas.core.claim import Erratum, ErratumClass
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)

_PAPER = "trauger2023sequence"
_LENGTHS = (10, 100, 1000, 10000)
_SAMPLES, _LETTERS, _MATRICES, _D = 6, 5, 12, 2
_DRAWS = 128
_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=_SAMPLES - 1)))
_ALL = np.concatenate([_SIGNS, np.ones((len(_SIGNS), 1))], axis=1)
_WIDE = 64


def _sequences(key: PRNGKeyArray, count: int) -> Instance:
    """Letters, their laws in each sequence, counts at every length, and matrices of all scales."""
    draws = generator(key)
    law = draws.dirichlet(np.ones(_LETTERS), (count, _SAMPLES))
    laws = np.repeat(law[:, None], _DRAWS, axis=1)
    counts = np.stack([draws.multinomial(T, laws) / T for T in _LENGTHS], axis=1)
    letters = draws.normal(size=(count, _LETTERS, _D))
    letters /= np.linalg.norm(letters, axis=-1).max(-1)[:, None, None]
    scale = np.exp(draws.uniform(-1, 2.5, (count, 1, 1, 1)))
    return {
        "letters": jax.device_put(letters),
        "law": jax.device_put(law),
        "shares": jax.device_put(counts),
        "M": jax.device_put(scale * draws.normal(size=(count, _MATRICES, _D, _D))),
    }


def _complexity(instance: Instance, shares: Array, softmax: bool) -> Array:
    """E_sigma max |<sigma, e_j' pooled>| / m over the matrices and coordinates."""
    letters, M = instance["letters"], instance["M"]
    # [CLS] is the first letter everywhere.
    logits = jnp.einsum("ad,kde,e->ka", letters, M, letters[0])
    tilt = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    weights = shares[None] * tilt[:, None]
    if softmax:
        weights = weights / jnp.sum(weights, axis=2, keepdims=True)
    pooled = jnp.einsum("kma,ad->kdm", weights, letters).reshape(-1, _SAMPLES)
    return jnp.mean(jnp.max(jnp.abs(pooled @ _ALL.T), axis=0)) / _SAMPLES


def _lengths(instance: Instance, softmax: bool = True) -> Sides:
    """Mean distance from the complexity at infinite length, over draws of the tokens."""
    T = np.array(_LENGTHS, float)
    shares = instance["shares"].reshape(-1, _SAMPLES, _LETTERS)
    found = jax.lax.map(lambda each: _complexity(instance, each, softmax), shares)
    found = found.reshape(len(T), _DRAWS)
    limit = _complexity(instance, instance["law"], True)
    change = jnp.mean(jnp.abs((found if softmax else T[:, None] * found) - limit), axis=1)
    return Sides(limit + change, jnp.broadcast_to(limit, change.shape), scales=jnp.asarray(T))


def _cover(W: np.ndarray, points: np.ndarray, epsilon: float) -> np.ndarray:
    return np.stack([perceptron_cover(row, points, epsilon)[0] for row in W])


def _covered(key: PRNGKeyArray, count: int) -> Instance:
    """Matrices with their centres at the [CLS] tokens, and at the first of them alone."""
    draws = generator(key)
    tokens = draws.normal(size=(count, 6, 5, 3))
    W = np.exp(draws.uniform(-2, 1.5, (count, 1, 1))) * draws.normal(size=(count, 3, 3))
    first = tokens[:, :, 0]
    epsilon = draws.uniform(0.02, 0.1, count) * np.abs(W).max((1, 2))
    given = list(zip(W, first, epsilon, strict=True))
    found = {
        "X": tokens,
        "W": W,
        "centre": np.stack([_cover(matrix, points, eps) for matrix, points, eps in given]),
        "first": np.stack([_cover(matrix, points[:1], eps) for matrix, points, eps in given]),
        "epsilon": epsilon,
    }
    return {name: jax.device_put(each) for name, each in found.items()}


def _at_cls(instance: Instance, centre: str = "centre") -> Sides:
    """Distance of the outputs at all samples against that of the logits' vectors at [CLS]."""
    X = instance["X"]

    def pooled(W: Array) -> Array:
        law = jax.nn.softmax(jnp.einsum("mtd,de,me->mt", X, W, X[:, 0]), axis=1)
        return jnp.einsum("mt,mtd->md", law, X)

    left = jnp.max(jnp.abs(pooled(instance["W"]) - pooled(instance[centre])))
    reach = jnp.max(jnp.abs(X)) * jnp.max(jnp.linalg.norm(X, axis=-1))
    size = jnp.max(jnp.abs(X))
    # Each of the three rows is covered at epsilon.
    return Sides(left, reach * jnp.sqrt(3.0) * instance["epsilon"], scale=size)


def _bound_instances(key: PRNGKeyArray, count: int) -> Instance:
    """Norms and samples from vacuous to informative."""
    draws = generator(key)
    return {
        "norm": jnp.asarray(10 ** draws.uniform(-2, 1, count)),
        "m": jnp.asarray(10 ** draws.uniform(3, 7, count)),
        "T": jnp.asarray(10 ** draws.uniform(1, 6, count)),
    }


def _bracket(instance: Instance, C: Array) -> Array:
    return trauger2023_bracket(C, 1.0, _WIDE, instance["m"])


def _flat_cover(instance: Instance) -> Array:
    return trauger2023_cover("1,1", instance["norm"], 1.0, _WIDE, _WIDE)


def _token_cover(instance: Instance, T: Array) -> Array:
    m = instance["m"]
    return edelman2022_cover(instance["norm"], 1.0, m * T, _WIDE, m)


def _bounds_in_length(instance: Instance, logarithm: bool = False) -> Sides:
    """The entropy coefficient at T = 10 ... 10^4 over that at T = 10."""
    T = jnp.asarray(_LENGTHS, instance["m"].dtype)
    if logarithm:
        C = jax.vmap(lambda length: _token_cover(instance, length))(T)
    else:
        C = jnp.broadcast_to(_flat_cover(instance), T.shape)
    return Sides(C / C[0], jnp.ones_like(C), scales=T)


def _equal_norms(instance: Instance, one: bool = False) -> Sides:
    """The brackets with ln(2 d^2 + 1) and with ln(d N), N = m T tokens or a single one."""
    tokens = jnp.ones_like(instance["m"]) if one else instance["m"] * instance["T"]
    C = instance["norm"] ** 2 * jnp.log(_WIDE * tokens)
    return Sides(_bracket(instance, _flat_cover(instance)), _bracket(instance, C))


def _large_norms(instance: Instance, factor: float = 1.0) -> Instance:
    return {**instance, "norm": factor * (8 + 3 * instance["norm"]), "m": 1e7 + 0 * instance["m"]}


def _counting(instance: Instance, factor: float = 1.0) -> Sides:
    """Parameter counting on the same number for the spectral norm, against the sharp bound."""
    given = _large_norms(instance, factor)
    counted = parameter_counting_single(1.0, given["norm"], 1.0, _WIDE**2, _WIDE, given["m"])
    C = _flat_cover(given)
    return Sides(counted, trauger2023_single(1.0, C, 1.0, _WIDE, given["m"], "sharp"))


_COMMON: dict[str, Any] = {"paper": _PAPER, "provenance": Provenance.DERIVED, "terms": 256}
_SUM = "the tokens summed up in place of the softmax's average"

LENGTH_LIMIT = Claim(
    name=f"{_PAPER}/sequence-length-limit",
    locator="Theorem 4.1, what it says of long sequences",
    statement=(
        r"\hat R_T \to \hat R_\infty < \infty \quad (T \to \infty),\quad "
        r"\hat R_T = \mathbb{E}_\sigma \sup_{j,W_{QK}} \frac1m \Big|\sum_i \sigma_i e_j^\top "
        r"X_{(i)}^\top \mathrm{softmax}(X_{(i)} W_{QK} x_{[CLS]})\Big|"
    ),
    kind=Kind.LIMIT,
    status=Status.NEW,
    instances=_sequences,
    sides=_lengths,
    control=Control(_SUM, sides=partial(_lengths, softmax=False)),
    note=(
        "T = 10, 100, 1000, 10^4 with random tokens from an alphabet of five: the complexity tends "
        "to that of infinitely long sequences as 1 / sqrt(T) (mean distance over 128 draws of the "
        "tokens). Six samples, all sign vectors, 12 matrices: exact for that class. The sum of "
        "tokens grows in proportion to T."
    ),
    **_COMMON,
)

BOUND_RATE = Claim(
    name=f"{_PAPER}/sequence-length-entropy",
    locator="Sections 1 and 3.3, against Edelman et al. 2022",
    statement=r"C = B_x^2 B_{QK}^2 \ln(2d^2+1) = O(1)\ \text{in}\ T",
    kind=Kind.RATE,
    status=Status.AS_PRINTED,
    instances=_bound_instances,
    sides=_bounds_in_length,
    control=Control(
        "the cover at m T tokens of Edelman et al. 2022",
        sides=partial(_bounds_in_length, logarithm=True),
    ),
    note=(
        "Entropy coefficients at T = 10 ... 10^4 over that at T = 10, d = 64. There is no T in the "
        "formula: what can fail here is the control alone."
    ),
    **{**_COMMON, "provenance": Provenance.FOUND},
)

CLS_TOKENS = Claim(
    name=f"{_PAPER}/sequence-length-cls",
    locator="Edelman et al. 2022 on the class of Theorem 4.1",
    statement=(
        r"\max_{i \le m} \|(W-\hat W)\, x_{[CLS]}^{(i)}\|_\infty \le \epsilon \;\Rightarrow\;"
        r"\max_{i,j} |e_j^\top X_{(i)}^\top (p_i - \hat p_i)| \le b B_x \sqrt d\, \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    instances=_covered,
    sides=_at_cls,
    control=Control("centres for the first [CLS] token alone", partial(_at_cls, centre="first")),
    count=48,
    note=(
        "The centres know the m [CLS] tokens alone, none of the m T tokens: with one layer and a "
        "[CLS] readout the cover of Edelman et al. 2022 has log m, and no log T to be removed. Log "
        "T enters where all tokens are read, from the second layer on."
    ),
    **_COMMON,
)

NO_LOGARITHM = Erratum(
    paper=_PAPER,
    locator="Sections 1 and 4.1, comparison with Edelman et al. 2022",
    kind=ErratumClass.GAP,
    text=(
        "For the single layer with a [CLS] readout the earlier cover is needed at the m [CLS] "
        "tokens alone, as the softmax is compared with W_QK x_cls: it has log m in place of "
        "log(mT). The dependence on T that Theorem 4.1 removes is not there in that case."
    ),
    claim=f"{_PAPER}/sequence-length-cls",
)

EQUAL_NORMS = Claim(
    name=f"{_PAPER}/equal-norms",
    locator="Corollary 4.1.1 against the log T bound, same number for both norms",
    statement=(
        r"m \ge 1000,\ T \ge 10: \quad \mathrm{bracket} \big( B^2 \ln(2d^2+1) \big) \le"
        r"\mathrm{bracket} \big( B^2 \ln(dmT) \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    instances=_bound_instances,
    sides=_equal_norms,
    control=Control("a single token in place of m T", sides=partial(_equal_norms, one=True)),
    note=(
        "d = 64, B_x = 1. With the same number B for both norms the bracket without T is the "
        "smaller one. The norms are not equal, see dense-weights-norms: on dense weights the "
        "comparison turns round. 2 d^2 + 1 <= d m T always, as m > d is asked for."
    ),
    **_COMMON,
)

COUNTING = Claim(
    name=f"{_PAPER}/section-2-5-parameter-counting",
    locator="Section 2.5, the two types of bounds",
    statement=(
        r"m = 10^7,\ d = 64,\ B_{QK} \ge 8: \quad \mathrm{bound}_{\mathrm{parameters}} \le"
        r"\mathrm{bound}_{1,1}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    instances=_bound_instances,
    sides=_counting,
    control=Control("a hundredth of the norms", sides=partial(_counting, factor=0.01)),
    note=(
        "Both with the chain's constants and softmax constant 1. Parameter counting has the norm "
        "in a logarithm and wins at large norms, Theorem 4.1 at small ones."
    ),
    **_COMMON,
)
