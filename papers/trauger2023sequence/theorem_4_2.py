r"""Theorem 4.2 and its corollaries as arithmetic: the optimum of Lemma E.1, and what is printed.

The second route unrolls the recursion from the readout down and minimises by the formula's own
ingredients, without the library's closed form. In the corollaries the left side has
the cover of each matrix at its own size on the inputs that it sees, the right one closed form, both
for m = 10,000 samples where the cover asks m.

The last claim holds Dudley's chain against measured complexities: networks of 1, 2 and 3 layers
and d = 1, 2 and 4 whose matrices are single entries of their balls, two sequences n times each.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import (
    trauger2023_amplification,
    trauger2023_deep,
    trauger2023_deep_entropy,
    trauger2023_parts,
)
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from trauger2023sequence.layer_instances import in_ball, longest
from trauger2023sequence.single_layer_instances import ROUNDINGS, mean_supremum, sign_sums

_DEPTHS = (1, 2, 4)
_NORMS = ("B_c", "B_v", "B_qk", "B_w")
_EQUAL = (*_NORMS, "lipschitz", "C_1", "C_x")
# Powers up to the fourth of products of five numbers, cube roots, a sum of 13 terms and a cube.
_ROUNDINGS = 128


def _unrolled(numbers, kappa):
    """gamma^3 for the recursion at every depth, walked from the readout down."""
    B_c, B_v, B_qk, cost, lipschitz, C, C_x = (jnp.asarray(numbers[name]) for name in _EQUAL)
    outer, gamma, optima = lipschitz * B_c, jnp.cbrt(C), []  # the readout itself, at cost 1
    for _ in range(max(_DEPTHS)):
        layer_term = jnp.cbrt(C * cost**2) + jnp.cbrt(C * (cost * outer) ** 2)
        keys = (kappa * cost * outer * B_v) ** 2
        optima.append(
            (gamma + layer_term + jnp.cbrt(C_x * keys)) ** 3
        )  # the first layer is the last met
        gamma = gamma + layer_term + jnp.cbrt(C * keys)
        cost = cost * outer * B_v * (1 + 2 * kappa * B_qk)
    return jnp.stack([optima[depth - 1] for depth in _DEPTHS])


def equal_layers(rng, count):
    """Norms over six decades, equal in all layers."""
    batch = {name: six_decades(rng, count, -1, 1) for name in _NORMS}
    batch["lipschitz"] = rng.uniform(0.3, 2, count)
    batch["C_1"] = 10.0 ** rng.uniform(-1, 2, count)
    return batch | {"C_x": batch["C_1"] * rng.uniform(0.1, 1, count)}


def _closed(numbers, constants):
    """The closed form at every depth."""
    *norms, lipschitz, C_1, C_x = (numbers[name] for name in _EQUAL)
    entropy = partial(trauger2023_deep_entropy, C_1, C_x, tuple(norms), lipschitz=lipschitz)
    return jnp.stack([entropy(L=depth, constants=constants) for depth in _DEPTHS])


on_equal_layers = partial(identity, sample=equal_layers, roundings=_ROUNDINGS)


@on_equal_layers(
    r"Theorem 4.2, corrected ($B_x, L_\sigma \le 1$)",
    status=Status.CORRECTED,
    controls=[
        Control(r"the printed $\gamma$ and $\eta$", constants="printed"),
        Control("with 1 for the softmax", constants="sharp"),
    ],
)
def theorem_4_2(*, constants="corrected", **numbers):
    r"""$$(\gamma+\eta)^3 = \min \sum_j \frac{C_j}{\epsilon_j^2}: \quad
    \gamma = C_{B_x}^{1/3} (2\lambda B_v \alpha_1 B_w)^{2/3}
    + C_1^{1/3} \big( 1 + (\alpha_1 B_w)^{2/3} + (\alpha_1 B_w \lambda)^{2/3} \big), \quad
    \eta = C_1^{1/3} B_w^{2/3} \sum_{i \ge 2} \alpha_i^{2/3}
    + (2\alpha_i \lambda B_v)^{2/3} + (\alpha_i \lambda)^{2/3}, \quad \lambda = L_\sigma B_c$$

    1, 2 and 4 layers. The right side is the optimum of Lemma E.1 for the unrolled recursion,
    computed without the closed form.
    """
    return _closed(numbers, constants), _unrolled(numbers, 2.0)


@on_equal_layers(
    "Theorem 4.2 with 1 for the softmax",
    status=Status.SHARPENED,
    controls=[Control("with 2 for the softmax", constants="corrected")],
)
def theorem_4_2_sharp(*, constants="sharp", **numbers):
    r"""$$\gamma = C_{B_x}^{1/3} (\lambda B_v \alpha_1 B_w)^{2/3} + \dots, \quad
    \tau_i = \alpha_i^{2/3} + (\alpha_i \lambda B_v)^{2/3} + (\alpha_i \lambda)^{2/3}, \quad
    \alpha_i = \prod_{j>i} \lambda B_v (1+2B_{QK})$$

    The entropy of $L$ layers falls by up to $2^{2L}$.
    """
    return _closed(numbers, constants), _unrolled(numbers, 1.0)


@on_equal_layers(
    "Theorem 4.2, the parts of the library",
    controls=[Control(r"$\alpha_i$ with its own layer's growth", own=True)],
)
def theorem_4_2_parts(*, own=False, **numbers):
    r"""$$\min \sum_j \frac{C_j}{\epsilon_j^2} \text{ under } \epsilon_w + B_w \sum_i \alpha_i
    \big( \epsilon_c^{(i)} + \lambda \epsilon_v^{(i)} + 2 \lambda B_v \epsilon_{QK}^{(i)}
    \big) = 1$$

    What `compare_bounds` uses, against the second route.
    """
    B_c, B_v, B_qk, B_w, lipschitz, C_1, C_x = (numbers[name] for name in _EQUAL)
    optima = []
    for depth in _DEPTHS:
        c, v, qk = (jnp.full((depth, 1), 1.0) * norm for norm in (B_c, B_v, B_qk))
        costs = trauger2023_parts(c, v, qk, B_w, 1.0, lipschitz, constants="corrected")
        heavy = jnp.asarray([p.layer == 1 and p.kind == "query_key" for p in costs])
        beta = jnp.stack([part.beta for part in costs])
        if own:
            beta = beta.at[1:].multiply(1 + 4 * B_qk)
        optima.append(trauger2023_allocation(jnp.where(heavy, C_x, C_1), beta)[0])
    return jnp.stack(optima), _unrolled(numbers, 2.0)


@erratum(
    "Theorem 4.2 as printed",
    of=Kind.IDENTITY,
    witness=lambda: {name: np.asarray(2.0 if name == "B_c" else 1.0) for name in _EQUAL},
    reason=(
        r"the first layer lacks its $W_c$ and $\alpha_1$, the third terms have $B_v$ where $B_c$ "
        "belongs"
    ),
    corrected=Control("corrected", constants="corrected"),
    roundings=_ROUNDINGS,
)
def theorem_4_2_printed(*, constants="printed", **numbers):
    r"""$$B_c=2,\ B_v=B_{QK}=B_w=L_\sigma=C_1=C_{B_x}=1: \quad
    C_{B_x}^{1/3} (2\lambda B_v \alpha_1 B_w)^{2/3}
    + C_1^{1/3} \big( 1 + (B_w L_\sigma B_v)^{2/3} + B_w^{2/3} \sum_{i \ge 2} \tau_i \big)
    = \Big( \min \sum_j \frac{C_j}{\epsilon_j^2} \Big)^{1/3}, \quad
    \tau_i = \alpha_i^{2/3} + (2\alpha_i \lambda B_v)^{2/3} + (\alpha_i L_\sigma B_v)^{2/3}$$

    At one layer of these norms the recursion needs 228 where 92 is printed. Where $B_v$ is far
    above $B_c$ the print is too large instead.
    """
    return _closed(numbers, constants), _unrolled(numbers, 2.0)


def four_layers(rng, count):
    """Norms of four layers of three heads, and alpha by products written out."""
    shape = (count, 4, 3)
    batch = {name: six_decades(rng, shape, -1, 1) for name in _NORMS[:3]}
    batch["lipschitz"] = rng.uniform(0.3, 2, count)
    c, v, qk = (batch[name] for name in _NORMS[:3])
    products = np.ones((count, 2, 4))
    for row, kappa in enumerate((2.0, 1.0)):
        growth = batch["lipschitz"][:, None] * np.sum(c * v * (1 + 2 * kappa * qk), axis=2)
        for layer in range(4):
            products[:, row, layer] = np.prod(growth[:, layer + 1 :], axis=1)
    return batch | {"product": products}


@identity(
    r"Theorem 4.2, $\alpha_i$, with $H$ heads",
    sample=four_layers,
    roundings=_ROUNDINGS,
    controls=[Control("layers shifted by one", shifted=True)],
)
def theorem_4_2_amplification(B_c, B_v, B_qk, lipschitz, product, *, shifted=False):
    r"""$$\alpha_i = \prod_{j=i+1}^L \sum_h L_\sigma \|W_c^{jh}\| \|W_v^{jh}\|
    (1+2\kappa\|W_{QK}^{jh}\|), \quad \kappa = 2 \text{ printed}, \ 1 \text{ sharp}$$

    The library's against the product written out; heads add up.
    """
    alpha = partial(trauger2023_amplification, B_c, B_v, B_qk, lipschitz)
    amplifications = jnp.stack([alpha(constants=constants) for constants in ("corrected", "sharp")])
    return jnp.roll(amplifications, -1, axis=1) if shifted else amplifications, product


_SIZES = ((1, 16), (4, 8), (8, 8))
_LAYERS, _SAMPLES = 2, 10_000


def deep_norms(rng, count):
    """Spectral norms over six decades, B from 1 to 10, B_x and L_sigma up to 1."""
    batch = {name: six_decades(rng, count, -1, 1) for name in _NORMS}
    batch["B"] = 10.0 ** rng.uniform(0, 1, count)
    batch["B_x"] = np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.3, 1, count))
    batch["lipschitz"] = np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.3, 1, count))
    return batch


def _cover(ball, norm, input_norm, rows, columns):
    """C of one matrix on inputs of norm `input_norm`, whose l_1 norm is sqrt(columns) times it."""
    spread = 1.0 if ball == "1,1" else math.sqrt(columns)
    return trauger2023_cover(ball, norm, spread * input_norm, rows, columns, _SAMPLES)


def _optimum(ball, k, d, *, B_c, B_v, B_qk, B_w, B, B_x, lipschitz):
    """Lemma E.1 with each matrix at its own size."""
    c, v, qk = (jnp.full((_LAYERS, 1), 1.0) * norm for norm in (B_c, B_v, B_qk))
    costs = trauger2023_parts(c, v, qk, B_w, B_x, lipschitz, constants="corrected")
    shapes = {"readout": (1, d), "output": (d, k), "value": (k, d), "query_key": (d, d)}
    C = [_cover(ball, B, jnp.asarray(p.input_norm), *shapes[p.kind]) for p in costs]
    return trauger2023_allocation(jnp.stack(C), jnp.stack([part.beta for part in costs]))[0]


def _coefficient(ball, B, k, d, constants):
    """C_1: that of a matrix of max(d, k) rows and columns, or as printed."""
    size = max(d, k)
    if constants == "corrected":
        return _cover(ball, B, jnp.ones(()), size, size)
    if ball == "1,1":
        return B**2 * math.log(2 * d * k + 1)
    return B**2 * (d * math.log(2 * k + 1) if ball == "1,inf" else math.log(d * k))


def _compared(ball, constants, coefficient, share, numbers):
    """The optimum and the closed form, at all sizes."""
    norms, (B, B_x) = tuple(numbers[n] for n in _NORMS), (numbers["B"], numbers["B_x"])
    left, right = [], []
    for k, d in _SIZES:
        C_1 = _coefficient(ball, B, k, d, coefficient)
        left.append(_optimum(ball, k, d, **numbers))
        right.append(
            trauger2023_deep_entropy(
                C_1, C_1 * B_x**2, norms, _LAYERS, numbers["lipschitz"], constants=constants
            )
        )
    return jnp.stack(left), share * jnp.stack(right)


on_norms = partial(
    inequality,
    sample=deep_norms,
    status=Status.CORRECTED,
    count=48,
    roundings=256,
    controls=[
        Control(
            r"the printed $\gamma$, $\eta$ and coefficient",
            constants="printed",
            coefficient="printed",
        ),
        Control(r"the printed $\gamma$ and $\eta$ alone", constants="printed"),
        Control("the printed coefficient alone", coefficient="printed"),
        Control("half of the right side", share=0.5),
    ],
)


@on_norms("Corollary 4.2.1, corrected")
def corollary_4_2_1(*, constants="corrected", coefficient="corrected", share=1.0, **drawn):
    r"""$$\min \sum_j \frac{C_j}{\epsilon_j^2} \le (\gamma+\eta)^3, \quad
    C_{B_x} = B_x^2 C_1, \quad C_1 = B^2 \ln(2\bar d^2+1), \quad \bar d = \max(d,k)$$

    $\gamma$ and $\eta$ of theorem-4-2. $W_{QK}$ is $d \times d$: the printed $\ln(2dk+1)$ does not
    cover it where $k < d$. $B_x, L_\sigma \le 1$; two layers, $(k, d) = (1, 16), (4, 8), (8, 8)$.
    """
    return _compared("1,1", constants, coefficient, share, drawn)


@on_norms("Corollary F.0.1, corrected")
def corollary_f_0_1(*, constants="corrected", coefficient="corrected", share=1.0, **drawn):
    r"""$$\min \sum_j \frac{C_j}{\epsilon_j^2} \le (\gamma+\eta)^3, \quad
    C_{B_x} = B_x^2 C_1, \quad C_1 = \bar d^2 B^2 \ln(2\bar d+1), \quad \bar d = \max(d,k)$$

    Lemma 3.3 requires $\|x\|_1 \le 1$, but rows after $\Pi_{norm}$ have $\|x\|_2 \le 1$ alone:
    another factor $d$ (see corollary-f-0-rows). $W_{QK}$ has $\ln(2d+1)$.
    """
    return _compared("1,inf", constants, coefficient, share, drawn)


@on_norms("Corollary F.0.2, corrected (norms of rows)")
def corollary_f_0_2(*, constants="corrected", coefficient="corrected", share=1.0, **drawn):
    r"""$$\min \sum_j \frac{C_j}{\epsilon_j^2} \le (\gamma+\eta)^3, \quad
    C_{B_x} = B_x^2 C_1, \quad C_1 = \bar d B^2 \min_\theta \big( \theta \ln(2\bar d^2+1)
    + \ln \lceil \log_\theta \tfrac m2 \rceil \big), \quad \sum_i \|W_i\|_2 \le B$$

    Norms of rows in place of columns, for which Lemma 3.4 is false; the logarithms that it hides;
    and the factor $d$ of $\|x\|_1 \le \sqrt d$ after $\Pi_{norm}$.
    """
    return _compared("2,1", constants, coefficient, share, drawn)


@erratum(
    "Corollaries F.0.1 and F.0.2, the inputs of inner layers",
    witness=lambda: {"x": np.full(9, 1 / 3), "error": 1e-3 * np.outer(np.eye(4)[0], np.ones(9))},
    reason=r"rows after $\Pi_{norm}$ may have $l_1$ norm $\sqrt d$, and the cover pays it",
    corrected=Control(r"with the factor $\sqrt d$", spread=3.0),
)
def corollary_f_0_rows(x, error, *, spread=1.0):
    r"""$$d=9,\ x=\tfrac13(1,\dots,1),\ W-\hat W = 10^{-3} e_1 (1,\dots,1): \quad
    \sup_{\|u\|_1 \le 1} \|(W-\hat W)u\| \le \epsilon, \ \|x\|_2 \le 1 \;\Rightarrow\;
    \|(W-\hat W)x\| \le \epsilon$$

    The corollaries apply Lemmas 3.3 and 3.4 to rows of which only $\|x\|_2 \le 1$ is known.
    """
    return Sides(longest((error @ x)[None]), spread * longest(error.T))


_CASES = ((1, 1), (2, 2), (3, 4))
"""Layers and dimensions."""
_NETWORKS = 16


def _entries(rng, norm, d):
    """Matrices with one entry of the norm; the first is e_1 e_1'."""
    place = rng.integers(d * d, size=_NETWORKS) * (np.arange(_NETWORKS) > 0)
    sign = rng.choice([-1.0, 1.0], (_NETWORKS, 1)) ** (np.arange(_NETWORKS) > 0)[:, None]
    return norm * (sign * np.eye(d * d)[place]).reshape(_NETWORKS, d, d)


def _values(rng, X, norms, depth):
    """Rows of the last layer at the first token, for both sequences, one per network and entry."""
    g = np.broadcast_to(X, (_NETWORKS, *X.shape))
    for _ in range(depth):
        c, v, qk = (_entries(rng, norm, X.shape[-1]) for norm in norms)
        logits = np.einsum("kbsd,kde,kbte->kbst", g, qk, g)
        law = np.exp(logits - logits.max(-1, keepdims=True))
        f = np.einsum("kbst,kbtd,kde->kbse", law / law.sum(-1, keepdims=True), g, v)
        g = in_ball(np.einsum("kbse,ked->kbsd", np.maximum(in_ball(f), 0), c))
    return np.swapaxes(g[:, :, 0], 1, 2).reshape(-1, 2)


def deep_samples(rng, count):
    """Norms c and v from 0.3 to 1 or 1, W_QK of six decades, and the complexity in each case.

    In every sixth instance these norms are 1, all tokens are e_1, and m is the largest: nothing is
    lost on the way through the layers, so that the controls are violated at every depth.
    """
    norms = rng.uniform(0.3, 1, (count, 3))
    norms[:, 2] = six_decades(rng, count, -1.5, -1)
    norms[::3] = [1.0, 1.0, 1e-3]
    B_w, n = 10 ** rng.uniform(-1, 1, count), (4 ** rng.uniform(5, 13, count)).astype(int)
    n[::6] = 4**13
    signs = sign_sums(n)
    samples = np.zeros((count, len(_CASES)))
    for i in range(count):
        for case, (depth, d) in enumerate(_CASES):
            X = in_ball(rng.normal(size=(2, int(rng.integers(1, 6)), d)))
            X[0, 0] = X[1, -1] = np.eye(d)[0]
            if i % 6 == 0:
                X[:] = np.eye(d)[0]
            values = _values(rng, X, norms[i], depth)
            samples[i, case] = B_w[i] * mean_supremum(values, n[i], signs[i])
    return {"norms": norms, "B_w": B_w, "m": 2.0 * n, "rademacher": samples}


@inequality(
    "Theorem 4.2 and Section 2.4, a measured complexity",
    sample=deep_samples,
    status=Status.CORRECTED,
    count=48,
    evaluations=288,
    roundings=ROUNDINGS,
    alike=True,
    controls=[
        Control("$1/m$ in place of the root", power=2.0),
        Control("$m^{-0.95}$ in place of the root", power=1.9),
    ],
)
def theorem_4_2_complexity(norms, B_w, m, rademacher, *, power=1.0):
    r"""$$\hat R \le \mathrm{chain} \Big( \frac{(\gamma+\eta)^3}{\epsilon^2};\ B_w \Big),\quad
    C_j = B_j^2 \ln(2 d^2 + 1),\quad \|W\|_{1,1} \le B_j$$

    Corrected costs with 1 for the softmax, tokens in the unit ball, $m = 2^{11}$ to $2^{27}$. The
    complexity is a lower one, without sampling; the constants of the bound are tested beside the
    formula and by theorem-4-2-parts, not here.
    """
    right = []
    for depth, d in _CASES:
        c, v, qk = (jnp.full((depth, 1), 1.0) * norm for norm in norms)
        costs = trauger2023_parts(c, v, qk, B_w, 1.0)
        radii = {"readout": B_w} | dict(zip(("output", "value", "query_key"), norms, strict=True))
        C = [
            trauger2023_cover("1,1", radii[p.kind], p.input_norm, 1 if p.layer == 0 else d, d)
            for p in costs
        ]
        beta = jnp.stack([part.beta for part in costs])
        right.append(trauger2023_deep(jnp.stack(C), beta, m**power, B_w))
    return rademacher, jnp.stack(right)
