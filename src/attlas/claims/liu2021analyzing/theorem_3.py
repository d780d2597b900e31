r"""Theorem 3 (appendix A.4): D layers, the factor 1/gamma^2 that is missing, and the count."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.generalisation.liu2021_corrected import liu2021_deep_corrected
from attlas.bounds.generalisation.liu2021_sample_size import liu2021_deep
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
from attlas.models.attention.deep_self_attention import DeepSelfAttention, make_deep_self_attention

_PAPER = "liu2021analyzing"
# Twice log N: at log N itself the bound of the probability is one.
_HIDDEN = 2.0


def _one(gamma: float, c_k: float, parameters: int, margin: float) -> dict[str, float]:
    return {
        "gamma": gamma,
        "c_k": c_k,
        "parameters": float(parameters),
        "margin": margin,
        "printed": liu2021_deep(gamma, c_k, parameters, c=_HIDDEN),
        "corrected": liu2021_deep_corrected(gamma, c_k, parameters, margin, c=_HIDDEN),
    }


def _sizes(key: PRNGKeyArray, count: int) -> Instance:
    """Accuracies from 1 to 1/1000, with a covering number (c_K / m gamma)^P as in the proof."""
    draws = generator(key)
    rows = []
    for _ in range(count):
        gamma = 10 ** draws.uniform(-3, 0)
        c_k = gamma * 10 ** draws.uniform(0.5, 3)
        rows.append(_one(gamma, c_k, int(draws.integers(5, 10**4)), draws.uniform(0.3, 1)))
    return {name: jnp.asarray([row[name] for row in rows]) for name in rows[0]}


def _witness() -> Witness:
    """Accuracy .01, c_K = 1, ten parameters."""
    return {name: np.asarray(value) for name, value in _one(0.01, 1.0, 10, 1.0).items()}


def _tail(instance: Instance, size: str) -> Sides:
    """Logarithm of N exp(-n m^2 gamma^2 / c_K), which must not be positive."""
    level = instance["margin"] * instance["gamma"]
    cover = instance["parameters"] * jnp.log(instance["c_k"] / level)
    exponent = instance[size] * level**2 / instance["c_k"]
    return Sides(cover - exponent, jnp.zeros_like(cover), scale=cover + exponent)


def _network(shape: tuple[Any, ...], key: PRNGKeyArray) -> DeepSelfAttention:
    return make_deep_self_attention(key, *shape)


def _networks(key: PRNGKeyArray, count: int) -> Instance:
    """Networks of two and three layers of equal sizes, with their parameters counted."""
    draws = generator(key)
    rows = []
    for place in range(count):
        layers = 2 + place % 2
        p, t, d_q, d_v, units = (int(k) for k in draws.integers(2, 6, 5))
        shape = (p, (t,) * layers, d_q, d_v, units)
        network = jax.eval_shape(partial(_network, shape), key)
        leaves = sum(leaf.size for leaf in jax.tree.leaves(network))
        own = layers * (2 * d_q * t + d_v * t)
        printed = own + layers * (t + d_v) * units
        corrected = own + (layers - 1) * (t + d_v) * units + (p * d_v + 1) * units
        rows.append((leaves, printed, corrected))
    columns = zip(("leaves", "printed", "corrected"), np.array(rows, float).T, strict=True)
    return {name: jnp.asarray(column) for name, column in columns}


def _count(instance: Instance, formula: str) -> Sides:
    return Sides(instance["leaves"], instance[formula])


def _teacher(key: PRNGKeyArray, count: int) -> Instance:
    del key
    return {name: jnp.asarray(np.repeat(v[None], count, 0)) for name, v in _features().items()}


def _features() -> Witness:
    """Centred last features of a teacher at four inputs, and its second layer."""
    phi = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    return {"phi": phi, "w": np.array([1.0, 2.0]), "other": np.array([1.5, 2.0])}


def _a6(instance: Instance, at: str) -> Sides:
    """(A6) at k = D, r = 2: c gamma^2, here .01, against the norm of cov(Phi, u)."""
    phi = instance["phi"]
    u = phi @ (instance[at] - instance["w"])
    right = jnp.linalg.norm(phi.T @ u) / phi.shape[0]
    return Sides(jnp.full_like(right, 0.01), right)


_COMMON: dict[str, Any] = {"paper": _PAPER, "kind": Kind.INEQUALITY}

THEOREM_3 = Claim(
    name=f"{_PAPER}/theorem-3",
    locator="Theorem 3, the sample size",
    statement=(
        r"n = 2 \log\left( \frac{c_K}{\gamma} \right) P \quad \Rightarrow \quad "
        r"N e^{-n c^2 \gamma^2 / c_K} \le 1, \quad N = \left( \frac{c_K}{c \gamma} \right)^P,"
        r"\quad P = d_{\mathrm{self}} + D (d_k + d_v) q_k"
    ),
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_sizes,
    sides=partial(_tail, size="printed"),
    control=Control(
        "times c_K / (c gamma)^2", sides=partial(_tail, size="corrected"), expect=Outcome.SUPPORTED
    ),
    expect=Expectation(Outcome.VIOLATED, "the tail bound of the proof needs a factor 1/gamma^2"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_witness,
    note=(
        "gamma = .01, c_K = 1, P = 10: the printed 92 samples leave a 'probability' of e^46. No "
        "proof could give the print: gamma^2 would fall as e^(-2n/P), while a mere regression on "
        "P parameters has an error of sigma^2 P/n (theorem-1-constant). The hidden constant is 2."
    ),
    **_COMMON,
)

CORRECTED = Claim(
    name=f"{_PAPER}/theorem-3-corrected",
    locator="Theorem 3, with the factor of its tail bound",
    statement=(
        r"n = \frac{2 c_K}{c^2 \gamma^2} \log\left( \frac{c_K}{c \gamma} \right) P \quad "
        r"\Rightarrow \quad N e^{-n c^2 \gamma^2 / c_K} \le 1"
    ),
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_sizes,
    sides=partial(_tail, size="corrected"),
    control=Control("as printed", sides=partial(_tail, size="printed")),
    note=(
        "A condition on the formula only: (A6) asks that the gradient be correlated with the "
        "error wherever that is large, which is the theorem's conclusion but for the sampling."
    ),
    **_COMMON,
)

PARAMETERS = Claim(
    name=f"{_PAPER}/theorem-3-parameters",
    paper=_PAPER,
    kind=Kind.IDENTITY,
    locator="Appendix A.4, number of parameters",
    statement=(
        r"\#w = d_{\mathrm{self}} + \sum_{k < D} (d_k + d_v) q_k + (p d_v + 1) q_D, \quad "
        r"d_{\mathrm{self}} = \sum_k (2 d_q + d_v) d_{k-1}"
    ),
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_networks,
    sides=partial(_count, formula="corrected"),
    count=32,
    control=Control("D (d_k + d_v) q_k, as printed", sides=partial(_count, formula="printed")),
    note=(
        "Counted from the arrays of networks of two and three layers. The last layer flattens its "
        "p words, so that w_D1 has p d_v rows, and not d_v; its print 1 x d_v is a third version. "
        "The proof has D (d_k + d_v q_k) besides."
    ),
)

ASSUMPTION_A6 = Claim(
    name=f"{_PAPER}/assumption-a6",
    locator="Appendix A.4, (A6)",
    statement=(
        r"c \gamma^2 \le \|\mathrm{cov}(\nabla h(w_{kr}), u)\| \quad \text{for all}\quad w, \quad "
        r"y = h(x; w^*) + \varepsilon"
    ),
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_teacher,
    sides=partial(_a6, at="w"),
    control=Control(
        "at other parameters", sides=partial(_a6, at="other"), expect=Outcome.SUPPORTED
    ),
    expect=Expectation(Outcome.VIOLATED, "at the true parameters u = 0, and (A3.2) has them"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_features,
    note=(
        "(A6) and (A3.2) exclude each other unless (A6) is asked only where E u^2 is at least "
        "gamma^2; then it is the conclusion but for the sampling. And it bounds the gradient by "
        "c gamma^2 from below, where the proof goes on with c gamma: as printed the tail bound is "
        "exp(-n c^2 gamma^4 / c_K), and the sample size has 1/gamma^4."
    ),
    **_COMMON,
)
