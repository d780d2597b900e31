r"""Norms of attention weights: errata 2 and 3 of Theorem 1, and what is right."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness

_PAPER = "liu2021analyzing"
_P = 6


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Logits from flat to one-hot, how many weights lead, and the part by which tau is raised."""
    draws = generator(key)
    return {
        "logits": jnp.asarray(
            draws.normal(size=(count, _P)) * 10 ** draws.uniform(-2, 1.5, (count, 1))
        ),
        "kept": jnp.asarray(draws.integers(1, _P, count)),
        # Half of the instances have the smallest tau that (A2) allows.
        "raised": jnp.asarray(np.maximum(draws.uniform(-1, 1, count), 0)),
    }


def _split(instance: Instance) -> tuple[Array, Array, Array]:
    """Norms of the leading and the other weights, of Euclidean norm one together, and tau."""
    falling = -jnp.sort(-jax.nn.softmax(instance["logits"]))
    falling = falling / jnp.linalg.norm(falling)
    first = jnp.arange(falling.size) < instance["kept"]
    lead = jnp.linalg.norm(jnp.where(first, falling, 0.0))
    least = jnp.maximum(1 - lead, 0.0)
    rest = jnp.linalg.norm(jnp.where(first, 0.0, falling))
    return lead, rest, least + instance["raised"] * (1 - least)


def _rest(instance: Instance) -> Sides:
    """Squares, whose rounding is that of the sum 1."""
    _, rest, tau = _split(instance)
    return Sides(rest**2, 2 * tau - tau**2, scale=jnp.ones_like(tau))


def _rest_tau(instance: Instance) -> Sides:
    _, rest, tau = _split(instance)
    return Sides(rest, tau, scale=jnp.ones_like(tau))


def _tenth() -> Witness:
    """Two weights of norms .9 and sqrt(.19), so that tau = .1 with s0 = 1."""
    return {
        "logits": np.log(np.array([0.9, np.sqrt(0.19)])),
        "kept": np.asarray(1),
        "raised": np.asarray(0.0),
    }


def _flat() -> Witness:
    """Four equal logits."""
    return {"logits": np.zeros(4), "kept": np.asarray(1), "raised": np.asarray(0.0)}


def _norm(instance: Instance) -> Sides:
    weights = jax.nn.softmax(instance["logits"])
    return Sides(jnp.linalg.norm(weights), jnp.ones((), weights.dtype))


def _sum(instance: Instance) -> Sides:
    weights = jax.nn.softmax(instance["logits"])
    return Sides(jnp.sum(weights), jnp.ones((), weights.dtype))


def _between(instance: Instance) -> Sides:
    norm = jnp.linalg.norm(jax.nn.softmax(instance["logits"]))
    low = jnp.asarray(1 / np.sqrt(_P), norm.dtype)
    return Sides(jnp.stack([low, norm]), jnp.stack([norm, jnp.ones_like(norm)]))


def _not_above_uniform(instance: Instance) -> Sides:
    norm = jnp.linalg.norm(jax.nn.softmax(instance["logits"]))
    return Sides(norm, jnp.asarray(1 / np.sqrt(_P), norm.dtype))


ERRATUM_2 = Claim(
    name=f"{_PAPER}/erratum-2",
    paper=_PAPER,
    locator="Proof of Theorem 1, f_sub",
    statement=(
        r"\|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad \|f_{\mathrm{sub}}\|_2 \le \tau,"
        r"\quad \|f\|_2 = \|f_{\mathrm{lead}}\|_2 + \|f_{\mathrm{sub}}\|_2 = 1"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_rest_tau,
    control=Control("sqrt(2 tau - tau^2)", sides=_rest, expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "squares of norms add up, not the norms"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_tenth,
    note="tau = .1, s0 = 1: the rest has norm .436, not .1.",
)

REST = Claim(
    name=f"{_PAPER}/erratum-2-corrected",
    paper=_PAPER,
    locator="Proof of Theorem 1, f_sub, corrected",
    statement=(
        r"\|f\|_2 = 1,\ \|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad "
        r"\|f_{\mathrm{sub}}\|_2^2 \le 2 \tau - \tau^2"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_rest,
    control=Control("tau, not squared", sides=_rest_tau),
    note="Equality whenever tau is the smallest that (A2) allows, for all weights.",
)

ERRATUM_3 = Claim(
    name=f"{_PAPER}/erratum-3",
    paper=_PAPER,
    locator="Section 3.1, below (3)",
    statement=r"f(x) = \mathrm{softmax}(z) \quad \Rightarrow \quad \|f(x)\|_2 = 1",
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_norm,
    control=Control("the sum of the weights is one", sides=_sum, expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "a softmax sums to one, its Euclidean norm is below"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_flat,
    note=(
        "'||f(x)||_2 = 1, as the sum one attention weights': four equal weights have norm 1/2. "
        "Euclidean normalisation multiplies a softmax by up to sqrt(p), most where it is flat."
    ),
)

BETWEEN = Claim(
    name=f"{_PAPER}/erratum-3-corrected",
    paper=_PAPER,
    locator="Section 3.1, below (3), corrected",
    statement=r"\frac{1}{\sqrt{p}} \le \|\mathrm{softmax}(z)\|_2 \le 1",
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_between,
    control=Control("at most 1/sqrt(p)", sides=_not_above_uniform),
    note=(
        "The left end is uniform attention, the right a one-hot one. With a softmax's own "
        "normalisation a bound through norms thus prefers uniform attention, by p^2 at the "
        "fourth power: the opposite of the paper's conclusion."
    ),
)
