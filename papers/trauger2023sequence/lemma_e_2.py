r"""Lemmas E.2 and E.3: how an error in the weights and in the rows passes one normalised layer.

Rows are those after an inner layer, of norm at most 1. All norms are measured on the pair. In the
first layer keys and values are tokens of norm B_x, so that its term of W_QK is B_x^2 times what is
printed, and Theorem 4.2 covers W_v^(1), which acts on tokens, and W_c, which acts on rows of norm
L_sigma, on the unit ball (errata).
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, inequality
from trauger2023sequence.layer_instances import (
    ROUNDINGS,
    TOKENS,
    WIDTH,
    close_query_key,
    close_rows,
    hidden,
    in_ball,
    layer,
    longest,
    put,
    spectral,
    stretched,
    weights_of,
    with_errors,
)
from trauger2023sequence.library.models.transformer import pi_norm

_NAMES = ("query_key", "value", "output")


def _close(rng, kind):
    """A pair that nearly attains one term: that of the rows (0), of W_QK, of W_v or of W_c (3)."""
    rows, move = (part[0] for part in close_rows(rng, 1))
    step, sharp = 10.0 ** rng.uniform(-6, -4), close_query_key(10.0 ** rng.uniform(0, 2, 1))
    eye, zero = np.eye(WIDTH), np.zeros((WIDTH, WIDTH))
    weights = {"query_key": sharp[0] if kind == 0 else zero, "value": eye, "output": eye}
    opposite = np.resize([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], (TOKENS, WIDTH))
    g = (rows, opposite)[kind] if kind < 2 else np.broadcast_to(eye[1] / 2, (TOKENS, WIDTH))
    pair = {"g": g, "g_hat": in_ball(g + move) if kind == 0 else g, "slope": np.ones(())}
    for place, (name, matrix) in enumerate(weights.items(), 1):
        error = step * np.outer(eye[1], eye[1]) if place == kind else zero
        pair |= {name: matrix[None], f"{name}_hat": (matrix + error)[None]}
    return pair


def layer_pairs(rng, count):
    """Random pairs, flat to saturated attention, and pairs close to each constant in turn."""
    g = in_ball(rng.normal(size=(count, TOKENS, WIDTH)) * rng.uniform(0.1, 2, (count, 1, 1)))
    move = 10.0 ** rng.uniform(-4, 0, (count, 1, 1)) * rng.normal(size=g.shape)
    batch = {
        "g": g,
        "g_hat": in_ball(g + move),
        "slope": rng.uniform(0, 1, count),
        "lipschitz": rng.uniform(0.5, 2, count),
    }
    batch |= with_errors(rng, dict.fromkeys(_NAMES, (count, 1, WIDTH, WIDTH)))
    for place in range(1, count, 2):
        put(batch, place, _close(rng, (place // 2) % 4))
    return batch


def _terms(pair, kappa, both_networks):
    """The measured change, and the right side's terms: W_c, rows, W_QK and W_v."""
    true, hat = weights_of(pair), weights_of(pair, "_hat")
    g, g_hat, shape = pair["g"], pair["g_hat"], (pair["lipschitz"], pair["slope"])
    moved = longest(layer(true, g, *shape) - layer(hat, g_hat, *shape))
    size = {name: spectral(pair[name])[0] for name in _NAMES}
    if both_networks:
        size = {n: jnp.maximum(s, spectral(pair[f"{n}_hat"])[0]) for n, s in size.items()}
    outer = pair["lipschitz"] * size["output"]
    inner = outer * size["value"]
    seen = hidden(hat, g_hat, *shape)[0]
    terms = (
        longest(seen @ (true.output - hat.output)[0]),
        inner * (1 + 2 * kappa * size["query_key"]) * longest(g - g_hat),
        kappa * inner * longest(g_hat @ (true.query_key - hat.query_key)[0]),
        outer * longest(g_hat @ (true.value - hat.value)[0]),
    )
    return moved, jnp.stack(terms)


def _magnitude(pair):
    """The rows are of size L ||W_c||, their difference is what is compared."""
    size = 1 + pair["lipschitz"] * spectral(pair["output"])[0]
    return size * (1 + spectral(pair["query_key"])[0])


on_layers = partial(
    inequality,
    sample=layer_pairs,
    search_over=("g", "g_hat", *(name + hat for name in _NAMES for hat in ("", "_hat"))),
    project=lambda g, g_hat: {"g": pi_norm(g), "g_hat": pi_norm(g_hat)},
    roundings=ROUNDINGS,
)


@on_layers(
    "Lemma E.2, inner layers",
    Source.FOUND,
    controls=[
        Control("without the term of $W_c$", without=0),
        Control("without the growth of the rows", without=1),
        Control("without the term of $W_{QK}$", without=2),
        Control("without the term of $W_v$", without=3),
        Control("nine tenths of the right side", factor=0.9),
    ],
)
def lemma_e_2(*, without=None, factor=1.0, **pair):
    r"""$$\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le
    \|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}
    + L_\sigma B_c B_v (1+4B_{QK}) \|(g-\hat g)^\top\|_{2,\infty}
    + 2 L_\sigma B_c B_v \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty}
    + L_\sigma B_c \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}$$

    Rows of norm at most 1, as after any layer but the first; $B$ bounds both networks. The terms
    of $W_c$ and of $W_v$ are attained; for the other two see lemma-e-2-sharp, and for the first
    layer lemma-e-2-first-layer.
    """
    moved, terms = _terms(pair, kappa=2.0, both_networks=True)
    included = jnp.asarray([float(place != without) for place in range(4)])
    return Sides(moved, factor * jnp.sum(included * terms), magnitude=_magnitude(pair))


@on_layers(
    "Lemma E.2 with 1 for the softmax",
    status=Status.SHARPENED,
    controls=[
        Control("1/2 for the softmax", kappa=0.5),
        Control(r"$1 + \|W_{QK}\|$ in place of $1 + 2 \|W_{QK}\|$", query_only=True),
    ],
)
def lemma_e_2_sharp(*, kappa=1.0, query_only=False, **pair):
    r"""$$\|(g-\hat g)_{i+1}^\top\|_{2,\infty} \le
    \|(W_c-\hat W_c)^\top \sigma(\Pi f(\hat g;\hat W))^\top\|_{2,\infty}
    + L_\sigma \|W_c\| \|W_v\| \big( (1+2\|W_{QK}\|) \|(g-\hat g)^\top\|_{2,\infty}
    + \|(W_{QK}-\hat W_{QK})^\top \hat g^\top\|_{2,\infty} \big)
    + L_\sigma \|W_c\| \|(W_v-\hat W_v)^\top \hat g^\top\|_{2,\infty}$$

    Only norms of the unhatted weights enter, so that centres of a cover may lie outside the class.
    The constants are attained in the limit: 1 for $W_{QK}$ by two opposite tokens at equal weight,
    $2 \|W_{QK}\|$ by a query and keys that move together under sharp attention.
    """
    moved, terms = _terms(pair, kappa, both_networks=False)
    right = jnp.sum(terms)
    if query_only:
        # the growth of the rows with one end of the logits in place of both
        inner = pair["lipschitz"] * spectral(pair["output"])[0] * spectral(pair["value"])[0]
        ends = kappa * spectral(pair["query_key"])[0]
        right = right - inner * ends * longest(pair["g"] - pair["g_hat"])
    return Sides(moved, right, magnitude=_magnitude(pair))


def readouts(rng, count):
    """Two rows in the ball and two readouts; in every other pair only one of them differs."""
    y = in_ball(rng.normal(size=(count, WIDTH)))
    w = rng.normal(size=(count, WIDTH)) * six_decades(rng, (count, 1), -1, 1)
    error = rng.normal(size=(2, count, WIDTH)) * 10.0 ** rng.uniform(-4, 0, (2, count, 1))
    error[0, 1::4] = 0
    error[1, 3::4] = 0
    return {"y": y, "y_hat": in_ball(y + error[0]), "w": w, "w_hat": w + error[1]}


@inequality(
    "Lemma E.3",
    Source.FOUND,
    sample=readouts,
    search_over=("y", "y_hat", "w", "w_hat"),
    roundings=32,
    controls=[
        Control("without the term of the rows", rows=0.0),
        Control("without the term of the readout", readout=0.0),
        Control("nine tenths of each term", rows=0.9, readout=0.9),
    ],
)
def lemma_e_3(y, y_hat, w, w_hat, *, rows=1.0, readout=1.0):
    r"""$$|w^\top Y - \hat w^\top \hat Y| \le \|w\| \|Y-\hat Y\| + |(w-\hat w)^\top \hat Y|$$

    Rows $Y$ of the last layer are any rows in the unit ball. Attained.
    """
    size, change = longest(w[None]), longest((y - y_hat)[None])
    right = rows * size * change + readout * jnp.abs((w - w_hat) @ y_hat)
    return Sides(jnp.abs(w @ y - w_hat @ y_hat), right, magnitude=size + 1)


def one_dimensional(B_x=4.0, error="query_key", step=1e-4, lipschitz=1.0):
    """D = 1, tokens B_x and -B_x at equal weight, one of the three numbers off by a step."""
    sign = -1.0 if error == "query_key" else 1.0
    shrink = 1.0 if error != "value" else 1 / (2 * B_x)
    numbers = {"query_key": 0.0, "value": shrink, "output": 1 / (2 * lipschitz)}
    if error == "query_key":
        numbers["output"] = 1.0
    pair = {"g": np.asarray([[B_x], [sign * B_x]]), "slope": np.asarray(1.0)}
    pair["lipschitz"] = np.asarray(lipschitz)
    for name, value in numbers.items():
        off = step if name == error else 0.0
        pair[name] = np.full((1, 1, 1), value)
        pair[f"{name}_hat"] = np.full((1, 1, 1), value + off)
    return pair


def one_dimensional_pairs(rng, count):
    """One-dimensional pairs as in the witness, and random ones; tokens of norm 0.5 to 16."""
    B_x = 10.0 ** rng.uniform(-0.3, 1.2, count)
    batch = {
        "g": in_ball(10 * rng.normal(size=(count, 2, 1)), B_x[:, None, None]),
        "slope": rng.uniform(0, 1, count),
        "lipschitz": rng.uniform(0.5, 2, count),
    }
    batch |= with_errors(rng, dict.fromkeys(_NAMES, (count, 1, 1, 1)))
    for place in range(0, count, 2):
        # the step is small against 1 / B_x^2, where the softmax is linear
        put(batch, place, one_dimensional(B_x[place], step=1e-4 / B_x[place] ** 2))
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

    Tokens of norm 0.5 to 16. The factor $B_x^2$ and the constant 1 are attained together.
    """
    return _lemma_e_2(pair, kappa, power)


def _covered(pair, measured_on):
    """The recursion with resolutions that are measured on the unit ball, or on what is seen."""
    c, v, qk = (spectral(pair[name])[None] for name in ("output", "value", "query_key"))
    costs = trauger2023_parts(
        c, v, qk, 1.0, longest(pair["g"]), pair["lipschitz"], constants="corrected"
    )
    total = jnp.zeros(())
    for part in costs[1:]:
        off = spectral(pair[part.kind] - pair[f"{part.kind}_hat"])[0]
        total = total + part.beta * off * (part.input_norm if part.kind == measured_on else 1.0)
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
    a = six_decades(rng, (count, 1), -2, 2) * rng.normal(size=(count, WIDTH))
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
    unit = jnp.ones(())
    moved = (lipschitz if stretch else unit) * longest((a - b)[None])
    right = jnp.stack([moved, lipschitz if reach else unit])
    return Sides(left, right, magnitude=right + 1)
