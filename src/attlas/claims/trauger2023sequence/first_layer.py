r"""The first layer with tokens longer than 1, and the activation with L_sigma > 1 (errata).

Lemma E.2 is printed for all layers. In the first one keys and values are tokens of norm B_x, so
that its term of W_QK is B_x^2 times what is printed, and Theorem 4.2 covers W_v^(1), which acts
on tokens, and W_c, which acts on rows of norm L_sigma, on the unit ball.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.claims.trauger2023sequence.layer_instances import (
    ROUNDINGS,
    WIDTH,
    in_ball,
    layer,
    longest,
    random_matrices,
    spectral,
    stretched,
    weights_of,
)
from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import erratum, inequality
from attlas.models.networks.transformer import pi_norm

_NAMES = ("query_key", "value", "output")


def one_dimensional(B_x=4.0, error="query_key", step=1e-4, lipschitz=1.0):
    """D = 1, tokens B_x and -B_x at equal weight, one of the three numbers off by a step."""
    sign = -1.0 if error == "query_key" else 1.0
    shrink = 1.0 if error != "value" else 1 / (2 * B_x)
    one = {"query_key": 0.0, "value": shrink, "output": 1 / (2 * lipschitz)}
    if error == "query_key":
        one["output"] = 1.0
    pair = {"g": np.asarray([[B_x], [sign * B_x]]), "slope": np.asarray(1.0)}
    pair["lipschitz"] = np.asarray(lipschitz)
    for name, value in one.items():
        off = step if name == error else 0.0
        pair[name] = np.full((1, 1, 1), value)
        pair[f"{name}_hat"] = np.full((1, 1, 1), value + off)
    return pair


def one_dimensional_pairs(rng, count):
    """One-dimensional pairs as in the witness, and random ones; tokens of norm .5 to 16."""
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
        close = one_dimensional(B_x[place], step=1e-4 / B_x[place] ** 2)
        for name, value in close.items():
            batch[name][place] = value
    return batch


def _moved(pair):
    """How far the outputs of the two layers are apart."""
    true, hat = (layer(weights_of(pair, h), pair["g"], *_activation(pair)) for h in ("", "_hat"))
    return longest(true - hat)


def _activation(pair):
    return pair["lipschitz"], pair["slope"]


def _lemma_e_2(pair, kappa, power):
    """Lemma E.2 on raw tokens, its term of W_QK times B_x^power."""
    X, true, hat = pair["g"], weights_of(pair), weights_of(pair, "_hat")
    outer = pair["lipschitz"] * spectral(true.output)[0]
    # the rows that W_c sees have norm at most L_sigma: its term at most that much
    of_output = spectral(pair["output"] - pair["output_hat"])[0] * pair["lipschitz"]
    of_value = outer * longest(X @ (true.value - hat.value)[0])
    of_query_key = (
        kappa
        * outer
        * spectral(true.value)[0]
        * longest(X) ** power
        * longest(X @ (true.query_key - hat.query_key)[0])
    )
    return Sides(_moved(pair), of_output + of_value + of_query_key, magnitude=1 + outer)


@erratum(
    "Lemma E.2 at $i = 1$, as printed",
    witness=one_dimensional,
    reason="keys and values of the first layer bring one factor $B_x$ each",
    corrected=Control("with the factor $B_x^2$", power=2.0),
    roundings=ROUNDINGS,
)
def lemma_e_2_first_layer(*, power=0.0, **pair):
    r"""$$d=1,\ X=(4,-4),\ W_{QK}=0,\ \hat W_{QK}=10^{-4},\ W_v=W_c=1: \quad
    \|(g-\hat g)_2^\top\|_{2,\infty} \le
    2 L_\sigma B_c B_v \|(W_{QK}-\hat W_{QK})^\top X^\top\|_{2,\infty}$$

    The output moves by 16 times the cost with 1 for the softmax, 8 times the printed one; right
    for $B_x \le 1$.
    """
    return _lemma_e_2(pair, kappa=2.0, power=power)


@inequality(
    "Lemma E.2 at $i = 1$, corrected, with 1 for the softmax",
    sample=one_dimensional_pairs,
    search_over=("g", *(name + hat for name in _NAMES for hat in ("", "_hat"))),
    status=Status.CORRECTED,
    roundings=ROUNDINGS,
    controls=[
        Control("$B_x$ in place of $B_x^2$", power=1.0),
        Control("1/2 for the softmax", kappa=0.5),
    ],
)
def lemma_e_2_first_layer_corrected(*, kappa=1.0, power=2.0, **pair):
    r"""$$\|(g-\hat g)_2^\top\|_{2,\infty} \le L_\sigma \|W_c-\hat W_c\|
    + L_\sigma \|W_c\| \big( \|(W_v-\hat W_v)^\top X^\top\|_{2,\infty}
    + \|W_v\| B_x^2 \|(W_{QK}-\hat W_{QK})^\top X^\top\|_{2,\infty} \big)$$

    Tokens of norm .5 to 16. The factor $B_x^2$ and the constant 1 are attained together.
    """
    return _lemma_e_2(pair, kappa, power)


def _covered(pair, reach):
    """The recursion with resolutions that are measured on the unit ball, or on what is seen."""
    c, v, qk = (spectral(pair[name])[None] for name in ("output", "value", "query_key"))
    parts = trauger2023_parts(
        c, v, qk, 1.0, longest(pair["g"]), pair["lipschitz"], constants="corrected"
    )
    total = jnp.zeros(())
    for part in parts[1:]:
        off = spectral(pair[part.kind] - pair[f"{part.kind}_hat"])[0]
        total = total + part.beta * off * (part.reach if part.kind == reach else 1.0)
    return _moved(pair), total


@erratum(
    "Theorem 4.2, cover of the first $W_v$",
    witness=partial(one_dimensional, error="value"),
    reason="the first $W_v$ acts on tokens of norm $B_x$: it needs $C_{B_x}$",
    corrected=Control("covered on inputs of norm $B_x$", reach="value"),
    roundings=ROUNDINGS,
)
def theorem_4_2_first_values(*, reach="", **pair):
    r"""$$d=1,\ X=(4,4),\ W_v=\tfrac18,\ W_c=\tfrac12: \quad
    \sup_{\|x\| \le 1} |(W_v-\hat W_v)x| \le \epsilon_v \;\Rightarrow\;
    \|(g-\hat g)_2^\top\|_{2,\infty} \le L_\sigma B_c \epsilon_v$$

    The theorem grants the larger cover $C_{B_x}$ to the first $W_{QK}$ alone.
    """
    return _covered(pair, reach)


@erratum(
    "Theorem 4.2, cover of $W_c$",
    witness=partial(one_dimensional, 1.0, error="output", lipschitz=3.0),
    reason=r"$W_c$ acts on $\sigma$ of unit rows, of norm up to $L_\sigma$",
    corrected=Control(r"covered on inputs of norm $L_\sigma$", reach="output"),
    roundings=ROUNDINGS,
)
def theorem_4_2_output_reach(*, reach="", **pair):
    r"""$$d=1,\ L_\sigma=3,\ W_c=\tfrac16: \quad
    \sup_{\|x\| \le 1} |(W_c-\hat W_c)x| \le \epsilon_c \;\Rightarrow\;
    \|(g-\hat g)_2^\top\|_{2,\infty} \le \epsilon_c$$

    Right for $L_\sigma \le 1$, as for ReLU; GELU has 1.13 and is not covered by the print.
    """
    return _covered(pair, reach)


def rows(rng, count):
    """Two rows, from far inside the ball to far outside, close to each other or not."""
    a = 10.0 ** rng.uniform(-2, 2, (count, 1)) * rng.normal(size=(count, WIDTH))
    b = a + 10.0 ** rng.uniform(-3, 1, (count, 1)) * rng.normal(size=a.shape)
    slope = rng.uniform(0, 1, count)
    return {"a": a, "b": b, "slope": slope, "lipschitz": rng.uniform(0.3, 3, count)}


@inequality(
    "Section 2.6 and proof of Theorem 4.2",
    sample=rows,
    search_over=("a", "b"),
    roundings=32,
    controls=[
        Control("norm 1 behind the activation", reach=False),
        Control("Lipschitz constant 1", stretch=False),
    ],
)
def section_2_6_activation(a, b, slope, lipschitz, *, reach=True, stretch=True):
    r"""$$\|\sigma(\Pi a) - \sigma(\Pi b)\| \le L_\sigma \|a-b\|, \quad
    \|\sigma(\Pi a)\| \le L_\sigma$$

    Both are attained. What the cover of $W_c$ must allow is $L_\sigma$, not the 1 of the print
    (theorem-4-2-output-reach).
    """
    after = [stretched(pi_norm(row), lipschitz, slope) for row in (a, b)]
    left = jnp.stack([longest((after[0] - after[1])[None]), longest(after[0][None])])
    one = jnp.ones(())
    moved = (lipschitz if stretch else one) * longest((a - b)[None])
    right = jnp.stack([moved, lipschitz if reach else one])
    return Sides(left, right, magnitude=right + 1)
