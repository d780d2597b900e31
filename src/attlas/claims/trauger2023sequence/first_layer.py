r"""The first layer with tokens longer than 1, and the activation with L_sigma > 1 (errata).

Lemma E.2 is printed for all layers. In the first one keys and values are tokens of norm B_x, so
that its term of W_QK is B_x^2 times what is printed, and Theorem 4.2 covers W_v^(1), which acts
on tokens, and W_c, which acts on rows of norm L_sigma, on the unit ball.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.claims.trauger2023sequence.layer_instances import (
    ROUNDINGS,
    in_ball,
    layer,
    longest,
    random_matrices,
    spectral,
    weights_of,
)
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

_PAPER = "trauger2023sequence"
_NAMES = ("query_key", "value", "output")


def _one_dimensional(
    B_x: float = 4.0, error: str = "query_key", step: float = 1e-4, lipschitz: float = 1.0
) -> dict[str, np.ndarray]:
    """D = 1, tokens B_x and -B_x at equal weight, one of the three numbers off by a step."""
    sign = -1.0 if error == "query_key" else 1.0
    shrink = 1.0 if error != "value" else 1 / (2 * B_x)
    one = {"query_key": 0.0, "value": shrink, "output": 1 / (2 * lipschitz)}
    if error == "query_key":
        one["output"] = 1.0
    instance = {"g": np.asarray([[B_x], [sign * B_x]]), "slope": np.asarray(1.0)}
    instance["lipschitz"] = np.asarray(lipschitz)
    for name, value in one.items():
        off = step if name == error else 0.0
        instance[name] = np.full((1, 1, 1), value)
        instance[f"{name}_hat"] = np.full((1, 1, 1), value + off)
    return instance


def _repeated(witness: Witness, count: int) -> Instance:
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in witness.items()}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """One-dimensional pairs as in the witness, and random ones; tokens of norm .5 to 16."""
    rng = generator(key)
    B_x = 10.0 ** rng.uniform(-0.3, 1.2, count)
    batch = {
        "g": in_ball(10 * rng.normal(size=(count, 2, 1)), B_x[:, None, None]),
        "slope": rng.uniform(0, 1, count),
        "lipschitz": rng.uniform(0.5, 2, count),
    }
    for name in _NAMES:
        matrix = random_matrices(rng, (count, 1, 1, 1))
        error = 10.0 ** rng.uniform(-4, -0.5, (count, 1, 1, 1)) * rng.normal(size=matrix.shape)
        batch |= {name: matrix, f"{name}_hat": matrix + error}
    for place in range(0, count, 2):
        # the step is small against 1 / B_x^2, where the softmax is linear
        close = _one_dimensional(B_x[place], step=1e-4 / B_x[place] ** 2)
        for name, value in close.items():
            batch[name][place] = value
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _query_key(instance: Instance, kappa: float = 2.0, power: float = 0.0) -> Sides:
    """Lemma E.2 on raw tokens, its term of W_QK times B_x^power."""
    X = instance["g"]
    true, hat = weights_of(instance), weights_of(instance, "_hat")
    shape = (instance["lipschitz"], instance["slope"])
    moved = longest(layer(true, X, *shape) - layer(hat, X, *shape))
    outer = shape[0] * spectral(true.output)[0]
    # the rows that W_c sees have norm at most L_sigma: its term at most that much
    off = {n: spectral(instance[n] - instance[f"{n}_hat"])[0] for n in _NAMES}
    terms = (
        off["output"] * shape[0]
        + outer * longest(X @ (true.value - hat.value)[0])
        + kappa
        * outer
        * spectral(true.value)[0]
        * longest(X) ** power
        * longest(X @ (true.query_key - hat.query_key)[0])
    )
    return Sides(moved, terms, scale=1 + outer)


def _unit_cover(instance: Instance, reach: str = "") -> Sides:
    """The recursion with resolutions that are measured on the unit ball, or on what is seen."""
    X = instance["g"]
    true, hat = weights_of(instance), weights_of(instance, "_hat")
    shape = (instance["lipschitz"], instance["slope"])
    moved = longest(layer(true, X, *shape) - layer(hat, X, *shape))
    c, v, qk = (spectral(instance[name])[None] for name in ("output", "value", "query_key"))
    parts = trauger2023_parts(c, v, qk, 1.0, longest(X), shape[0])
    total = jnp.zeros(())
    for part in parts[1:]:
        off = spectral(instance[part.kind] - instance[f"{part.kind}_hat"])[0]
        total = total + part.beta * off * (part.reach if part.kind == reach else 1.0)
    return Sides(moved, total)


_ERRATUM: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.ERRATUM,
    "provenance": Provenance.FOUND,
    "count": 1,
    "coverage": Coverage.EXHAUSTIVE,
    "terms": ROUNDINGS,
}

FIRST_KEYS_PRINTED = Claim(
    name=f"{_PAPER}/lemma-e-2-first-layer",
    locator="Lemma E.2 at i = 1, as printed",
    statement=(
        r"d=1,\ X=(4,-4),\ W_{QK}=0,\ \hat W_{QK}=10^{-4},\ W_v=W_c=1: \quad "
        r"\|(g-\hat g)_2^\top\|_{2,\infty} \le "
        r"2 L_\sigma B_c B_v \|(W_{QK}-\hat W_{QK})^\top X^\top\|_{2,\infty}"
    ),
    instances=lambda key, count: _repeated(_one_dimensional(), count),
    sides=_query_key,
    control=Control(
        "with the factor B_x^2",
        sides=partial(_query_key, power=2.0),
        expect=Outcome.SUPPORTED,
    ),
    witness=_one_dimensional,
    expect=Expectation(
        Outcome.VIOLATED, "keys and values of the first layer bring one factor B_x each"
    ),
    note=(
        "The output moves by 16 times the cost with 1 for the softmax, 8 times the printed one; "
        "right for B_x <= 1."
    ),
    **_ERRATUM,
)

FIRST_KEYS = Claim(
    name=f"{_PAPER}/lemma-e-2-first-layer-corrected",
    paper=_PAPER,
    locator="Lemma E.2 at i = 1, corrected, with 1 for the softmax",
    statement=(
        r"\|(g-\hat g)_2^\top\|_{2,\infty} \le L_\sigma \|W_c-\hat W_c\|"
        r"+ L_\sigma \|W_c\| \big( \|(W_v-\hat W_v)^\top X^\top\|_{2,\infty}"
        r"+ \|W_v\| B_x^2 \|(W_{QK}-\hat W_{QK})^\top X^\top\|_{2,\infty} \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=partial(_query_key, kappa=1.0, power=2.0),
    control=(
        Control("B_x in place of B_x^2", sides=partial(_query_key, kappa=1.0, power=1.0)),
        Control("1/2 for the softmax", sides=partial(_query_key, kappa=0.5, power=2.0)),
    ),
    terms=ROUNDINGS,
    note="Tokens of norm .5 to 16. The factor B_x^2 and the constant 1 are attained together.",
)

FIRST_VALUES = Claim(
    name=f"{_PAPER}/theorem-4-2-first-values",
    locator="Theorem 4.2, cover of the first W_v",
    statement=(
        r"d=1,\ X=(4,4),\ W_v=\tfrac18,\ W_c=\tfrac12: \quad "
        r"\sup_{\|x\| \le 1} |(W_v-\hat W_v)x| \le \epsilon_v \;\Rightarrow\;"
        r"\|(g-\hat g)_2^\top\|_{2,\infty} \le L_\sigma B_c \epsilon_v"
    ),
    instances=lambda key, count: _repeated(_one_dimensional(error="value"), count),
    sides=_unit_cover,
    control=Control(
        "covered on inputs of norm B_x",
        sides=partial(_unit_cover, reach="value"),
        expect=Outcome.SUPPORTED,
    ),
    witness=partial(_one_dimensional, error="value"),
    expect=Expectation(Outcome.VIOLATED, "the first W_v acts on tokens of norm B_x: it needs C_Bx"),
    note="The theorem grants the larger cover C_Bx to the first W_QK alone.",
    **_ERRATUM,
)

OUTPUT_REACH = Claim(
    name=f"{_PAPER}/theorem-4-2-output-reach",
    locator="Theorem 4.2, cover of W_c",
    statement=(
        r"d=1,\ L_\sigma=3,\ W_c=\tfrac16: \quad "
        r"\sup_{\|x\| \le 1} |(W_c-\hat W_c)x| \le \epsilon_c \;\Rightarrow\;"
        r"\|(g-\hat g)_2^\top\|_{2,\infty} \le \epsilon_c"
    ),
    instances=lambda key, count: _repeated(
        _one_dimensional(1.0, error="output", lipschitz=3.0), count
    ),
    sides=_unit_cover,
    control=Control(
        "covered on inputs of norm L_sigma",
        sides=partial(_unit_cover, reach="output"),
        expect=Outcome.SUPPORTED,
    ),
    witness=partial(_one_dimensional, 1.0, error="output", lipschitz=3.0),
    expect=Expectation(Outcome.VIOLATED, "W_c acts on sigma of unit rows, of norm up to L_sigma"),
    note="Right for L_sigma <= 1, as for ReLU; GELU has 1.13 and is not covered by the print.",
    **_ERRATUM,
)
