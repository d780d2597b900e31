r"""The formulas of the paper, written out again from its text, against those of the library.

A bound that is far from tight does not notice a wrong constant; these identities do. k = 3 rows,
d = 5 columns, L = 1, 2 and 4 layers. The derived forms ("corrected" and "sharp") are written out
from docs/proofs.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.dudley import (
    LEVELS,
    RATIOS,
    DudleyConstants,
    dudley_chain,
    dudley_integral,
)
from attlas.bounds.covering.edelman2022_cover import GRID_RATIOS, edelman2022_cover
from attlas.bounds.covering.maurey import maurey_bound
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import (
    covering_lower_bound,
    trauger2023_cover,
    trauger2023_mapping_entropy,
)
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_deep import trauger2023_deep, trauger2023_deep_entropy
from attlas.bounds.generalisation.trauger2023_masked import trauger2023_masked
from attlas.bounds.generalisation.trauger2023_single import (
    trauger2023_alpha,
    trauger2023_bracket,
    trauger2023_single,
)
from attlas.claims.claim import Control, Kind, Sides, Source
from attlas.claims.statement import computed, identity
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from trauger2023sequence.library.models.transformer import Layer, Transformer, scalar_readout
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    ROWS,
    MajorityNorms,
    majority_bounds,
)

_K, _D, _DEPTHS, _DELTA = 3, 5, (1, 2, 4), 0.05
_ROOT = 2**0.5
_DUDLEY: dict[DudleyConstants, tuple[float, float]] = {
    "printed": (1, 1),
    "classical": (4, 12),
    "sharp": (1 + _ROOT, _ROOT * (1 + _ROOT) ** 2),
}
_NUMBERS = ("B", "B_x", "B_c", "B_v", "B_qk", "B_w", "C", "lipschitz")


def numbers(rng, count):
    """Norms over two decades, samples from 100 to 10^8."""
    drawn = {name: 10 ** rng.uniform(-1, 1, count) for name in _NUMBERS}
    return drawn | {"m": 10 ** rng.uniform(2, 8, count), "share": rng.uniform(0.1, 0.9, count)}


on_numbers = partial(identity, sample=numbers, source=Source.FOUND, count=32, roundings=512)


def _sides(*pairs):
    return tuple(jnp.stack(side) for side in zip(*pairs, strict=True))


def _row_cover(k, points, m):
    """Nats per update of a perceptron, and of the lengths of rows, at the best ratio of a grid."""
    theta = jnp.asarray(GRID_RATIOS)
    cells = jnp.maximum(jnp.ceil(jnp.log(m / 2) / jnp.log(theta)), 1)
    return jnp.min(theta * math.log(2 * k * points + 1) + jnp.log(cells))


@on_numbers(
    "Lemmas 3.1, 3.3 to 3.6 and Appendix A, the formulas",
    controls=[Control("norms not squared", square=1.0)],
)
def section_3_formulas(B, B_x, m, share, *, square=2.0):
    r"""$$C_{1,1} = B_x^2 B_w^2 \ln(2dk+1),\quad C_{1,\infty} = d B_w^2 B_x^2 \ln(2k+1),\quad
    C_{2,1} \lesssim B_w^2 B_x^2 \ln(dk),\quad \frac{\gamma^2 b^2 - \|f\|^2}{k},\quad k\,C$$

    With them what is derived: $C_{2,1} = B_w^2 B_x^2 \min_\theta (\theta \ln(2kd+1) + \ln \lceil
    \log_\theta \frac m2 \rceil)$, $\gamma b^2$ for $\gamma^2 b^2$, one row, and volumes.
    """
    size, ball = (B * B_x) ** square, (share * B) ** square
    found = partial(trauger2023_cover, norm=B, B_x=B_x, k=_K, d=_D)
    maurey = partial(maurey_bound, share, B, share * B / 2, _K)
    return _sides(
        (found("1,1"), size * math.log(2 * _D * _K + 1)),
        (found("1,inf"), size * _D * math.log(2 * _K + 1)),
        (found("2,1", constants="printed"), size * math.log(_D * _K)),
        (found("2,1", m=m), size * _row_cover(_K, _D, m)),
        (edelman2022_cover(B, B_x, _D, 1, m), size * math.log(2 * _D + 1)),
        (trauger2023_mapping_entropy(found("1,1"), _K), _K * size * math.log(2 * _D * _K + 1)),
        (maurey(constants="printed"), 3 / 4 * ball / _K),
        (maurey(constants="corrected"), (share * B**square - ball / 4) / _K),
        (covering_lower_bound(B, B_x, _K, share), _K / 2 * jnp.log(size / share**square)),
    )


def _integral(A, D, m, R, c_1=1.0, c_2=1.0):
    """Dudley's integral of the root of A + D / eps^2 at its best delta."""
    room = m * c_1**2 - A * c_2**2
    best = c_2 * jnp.sqrt(D / jnp.where(room > 0, room, 1))
    delta = jnp.where(room > 0, jnp.minimum(best, R), R)
    ends = [jnp.hypot(jnp.sqrt(A) * e, jnp.sqrt(D)) for e in (delta, R)]
    angles = [jnp.sqrt(D) * jnp.arcsinh(jnp.sqrt(D / A) / e) for e in (delta, R)]
    return c_1 * delta + c_2 / jnp.sqrt(m) * (ends[1] - angles[1] - ends[0] + angles[0])


def _chain(entropy, m, R):
    """The chain for every ratio of the library's grid; levels stop at 1e-15 of the radius."""
    j = jnp.arange(LEVELS + 1.0)
    level = R * jnp.maximum(jnp.asarray(RATIOS)[:, None] ** -j[None], 1e-15)
    nats = entropy(level[:, 1:])
    link = (level[:, :-1] + level[:, 1:]) * jnp.sqrt(2 * nats / m)
    total = jnp.cumsum(jnp.where(nats <= m / 2, link, jnp.inf), axis=1)
    return jnp.minimum(R, jnp.min(level[:, 1:] + total))


@on_numbers(
    "Sections 2.3 and 2.4, the formulas",
    controls=[Control("$1/m$ in place of the root", power=1.0)],
)
def section_2_formulas(B, C, lipschitz, m, share, *, power=0.5):
    r"""$$2 R + 4c \sqrt{\frac{2 \ln(4/\delta)}{m}},\quad
    \delta + \frac{1}{\sqrt m} \int_\delta^R \sqrt{\log N}$$

    With them what is derived: $3c \sqrt{(\ln(2/\delta) + u) / 2m}$, Dudley's integral with
    $1 + \sqrt 2$ and $\sqrt 2 (1 + \sqrt 2)^2$, with 4 and 12, and the chain, level by level.
    """
    c, A, D = lipschitz, math.log(2 * _D), share * C**2
    tails = [jnp.log(2 / _DELTA), jnp.log(2 / _DELTA) + B]
    gap = partial(generalisation_gap, share, m, _DELTA, c)
    at = m ** (2 * power)
    return _sides(
        (gap(constants="printed"), 2 * share + 4 * c * jnp.sqrt(2 * jnp.log(4 / _DELTA) / at)),
        (gap(), 2 * share + 3 * c * jnp.sqrt(tails[0] / (2 * at))),
        (gap(union_cost=B), 2 * share + 3 * c * jnp.sqrt(tails[1] / (2 * at))),
        *(
            (dudley_integral(A, D, m, B, constants=name), _integral(A, D, at, B, *c_1_and_c_2))
            for name, c_1_and_c_2 in _DUDLEY.items()
        ),
        (dudley_chain(lambda e: A + D / e**2, m, B), _chain(lambda e: A + D / e**2, at, B)),
    )


@on_numbers(
    "Theorem 4.1 and its corollaries, the formulas",
    controls=[
        Control("$B_x$ in place of $B_x^2$ before the root of $C$", power=1.0),
        Control(r"$\alpha$ with half the logarithm", half=0.5),
    ],
)
def section_4_1_formulas(B, B_x, C, lipschitz, m, share, *, power=2.0, half=1.0):
    r"""$$\frac{2 B_x^2 \sqrt C}{\sqrt m} \Big( 1 + \ln \frac{\sqrt m}{2 B_x \sqrt C} \Big) +
    B_x \sqrt{\frac{\ln 2d}{m}}$$

    $\alpha = B \sqrt{2 \ln(2d^2+1)}$, $2B \sqrt{d \ln(2d+1)}$, $2B \sqrt{2 \ln d}$ printed, the
    first corrected to $2B \sqrt{\ln(2d^2+1)}$ and halved by the softmax's constant 1; the bracket,
    its minimum over $\delta \le B_x$, and $2B$ times Dudley's integral, the chain, and the count
    of $d^2$ parameters.
    """
    ln, base = math.log, math.log(2 * _D)
    alpha = partial(trauger2023_alpha, norm=B, d=_D)
    bracket = partial(trauger2023_bracket, C, B_x, _D, m)
    single = partial(trauger2023_single, lipschitz, C, B_x, _D, m)
    flat, a, b = half * ln(2 * _D**2 + 1), 2 * B_x**power * jnp.sqrt(C), share * B_x
    room = jnp.sqrt(m) - math.sqrt(base)
    delta = jnp.where(room > 0, jnp.minimum(a / jnp.where(room > 0, room, 1), B_x), B_x)
    split = delta + (B_x - delta) * jnp.sqrt(base / m) + a / jnp.sqrt(m) * jnp.log(B_x / delta)
    closed = a / jnp.sqrt(m) * (1 + jnp.log(B_x * jnp.sqrt(m) / a)) + B_x * jnp.sqrt(base / m)
    whole = jnp.minimum(_integral(base, a**2, m, B_x, *_DUDLEY["sharp"]), B_x)
    cells = 2 * B_x ** (power + 1) * B
    counted = _chain(lambda e: base + _D**2 * jnp.log1p(cells / e), m, B_x)
    chained = _chain(lambda e: base + (share * a / 2 / e) ** 2, m, b)
    left, right = _sides(
        (alpha("1,1", constants="printed"), B * math.sqrt(2 * flat)),
        (alpha("1,1", constants="corrected"), 2 * B * math.sqrt(flat)),
        (alpha("1,1"), B * math.sqrt(flat)),
        (alpha("1,inf", constants="printed"), 2 * B * math.sqrt(half * _D * ln(2 * _D + 1))),
        (alpha("2,1", constants="printed"), 2 * B * math.sqrt(half * 2 * ln(_D))),
        (bracket(constants="printed"), closed),
        (bracket(constants="corrected"), split),
        (bracket(), _integral(base, a**2 / 4, m, B_x)),
        (single(constants="printed"), lipschitz * closed),
        (single(constants="corrected"), 2 * lipschitz * whole),
        (single(largest_entry=b), 2 * lipschitz * chained),
        (parameter_counting_single(lipschitz, B, B_x, _D**2, _D, m), 2 * lipschitz * counted),
    )
    # the terms of the closed form cancel where it is negative
    return Sides(left, right, magnitude=jnp.abs(right) + (1 + lipschitz) * (a + B_x))


@on_numbers(
    "Theorems 4.2 and 5.1, the formulas",
    controls=[Control("without the cube roots", third=1.0), Control("1 in place of 2", two=1.0)],
)
def section_4_2_formulas(B_c, B_v, B_qk, B_w, C, lipschitz, m, share, *, third=1 / 3, two=2.0):
    r"""$$\gamma = C_{B_x}^{1/3} (2 L_\sigma B_{c2} B_{v2} \alpha_1 B_w)^{2/3} + C_1^{1/3} \big(
    1 + (B_w L_\sigma B_{v2})^{2/3} \big),\quad
    \eta = C_1^{1/3} B_w^{2/3} \sum_{i=2}^L \tau_i$$

    $\alpha_i$ and $\tau_i$ as printed, $L = 1$, 2, 4; the chain that makes a complexity of it; and
    $2 \sqrt K R$ (printed), $2 K R$ (derived) for $K = 9$ words.
    """
    C_x, L_sigma, root = share * C, lipschitz, 2 * third
    outer = L_sigma * B_c * B_v

    def printed(L):
        alpha = [(outer * (1 + 2 * two * B_qk)) ** (L - i) for i in range(1, L + 1)]
        tau = sum(
            a**root + (two * a * outer) ** root + (a * L_sigma * B_v) ** root for a in alpha[1:]
        )
        gamma = C_x**third * (two * outer * alpha[0] * B_w) ** root
        gamma += C**third * (1 + (B_w * L_sigma * B_v) ** root)
        return (gamma + C**third * B_w**root * tau) ** 3

    norms = (B_c, B_v, B_qk, B_w)
    deep = partial(trauger2023_deep_entropy, C, C_x, norms, lipschitz=L_sigma, constants="printed")
    total = (C**third + (two / 2) * (C_x * B_v**2) ** third) ** 3
    found = trauger2023_deep(jnp.stack([C, C_x]), jnp.stack([jnp.ones_like(B_v), B_v]), m, B_w)
    return _sides(
        *((deep(L=L), printed(L)) for L in _DEPTHS),
        (found, _chain(lambda e: total / e**2, m, B_w)),
        (trauger2023_masked(share, 9, constants="printed"), two * 3 * share),
        (trauger2023_masked(share, 9), two * 9 * share),
    )


def weights(rng, count):
    """Four tokens of three entries, one head of width 2, and a readout; rows short and long."""
    shapes = {"X": (4, 3), "W_QK": (3, 3), "W_v": (3, 2), "W_c": (2, 3), "w": (3,)}
    size = {
        name: 10 ** rng.uniform(-0.5, 0.5, (count, *(1,) * len(s))) for name, s in shapes.items()
    }
    return {name: size[name] * rng.normal(size=(count, *s)) for name, s in shapes.items()}


@identity(
    "Sections 2.6 and 4.1, the networks",
    Source.FOUND,
    sample=weights,
    roundings=512,
    controls=[Control("keys and queries exchanged", exchanged=True)],
)
def section_2_6_networks(X, W_QK, W_v, W_c, w, *, exchanged=False):
    r"""$$w^\top W_c^\top \sigma(W_v^\top X^\top \mathrm{softmax}(X W_{QK} x_{[CLS]})),\quad
    g^{(i+1)} = \Pi_{norm} \big( \sigma( \Pi_{norm}( \mathrm{RowSoftmax}(g W_{QK} g^\top)\, g W_v))
    W_c \big),\ w^\top g^{(3)}_{[CLS]}$$

    The single layer and two layers of the library against the displays; $\sigma$ is the ReLU.
    """

    def softmax(logits):
        law = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
        return law / jnp.sum(law, axis=-1, keepdims=True)

    def projected(rows):
        return rows / jnp.maximum(1, jnp.sqrt(jnp.sum(rows**2, axis=-1, keepdims=True)))

    heads, W = (W_QK[None], W_v[None], W_c[None]), W_QK.T if exchanged else W_QK
    single, g = w @ W_c.T @ jnp.maximum(W_v.T @ X.T @ softmax(X @ W @ X[0]), 0), X
    for _ in range(2):
        g = projected(jnp.maximum(projected(softmax(g @ W @ g.T) @ g @ W_v), 0) @ W_c)
    deep = scalar_readout(Transformer((Layer(*heads), Layer(*heads))), w, X)
    size = jnp.sqrt(jnp.sum(w**2)) * (1 + jnp.sum(W_QK**2)) * (1 + jnp.sum(X**2)) ** 1.5
    size *= jnp.stack([jnp.sum(jnp.abs(W_c)) * jnp.sum(jnp.abs(W_v)), 1.0])
    left = jnp.stack([SingleLayerTransformer(w, *heads)(X, X[0]), deep])
    return Sides(left, jnp.stack([single, w @ g[0]]), magnitude=size)


@computed(
    Kind.IDENTITY,
    "Theorem 4.1 on the model of Section 6, the formula",
    count=32,
    roundings=512,
    controls=[
        Control("the bias of the ReLU once in place of twice", twice=1.0),
        Control(r"$\rho$ without the constant", constants=0.0),
    ],
)
def section_6_formulas(rng, count, *, twice=2.0, constants=1.0):
    r"""$$\sum_{c \le 2} \Big( \|r_c\|_1 \Big[ \sum_h R_h + \frac{2 \max |b|}{\sqrt m} \Big]
    + \frac{|c_c|}{\sqrt m} \Big) + 3 \rho \sqrt{\frac{\ln(2/\delta)}{2m}},\quad
    \rho = \frac12 \sum_{c \le 2} \big( \|r_c\|_1 (\textstyle\sum_h \|V_h\| b_x + \max |b|)
    + |c_c| \big)$$

    Two heads, $d = 4$; $R_h$ by the printed bracket of Corollary 4.1.1 (for its cover), and, for
    matrices so large that every bound is the trivial one, $R_h = \|V_h\| b_x$, $b_x$ the largest
    entry of a token.
    """
    m, d = np.array([1e4, 1e7]), 4
    query_key = 10 ** rng.uniform(-3, 0, (count, 2, 5))
    query_key[::2] *= 1e6
    sizes = [10 ** rng.uniform(-1, 1, (count, n)) for n in (2, 2, 2, 3)]
    value, readout, constant, tokens = sizes
    tokens[:, 0] **= 0.5  # the bracket is the printed one where a <= B_x
    bias = 10 ** rng.uniform(-1, 1, count)
    norms = MajorityNorms(query_key, value, bias, readout, constant, tokens)
    found, spread = majority_bounds(norms, jnp.asarray(m), 7, d, _DELTA)
    a = 2 * tokens[:, :1] ** 3 * query_key[:, :, 0] * math.sqrt(math.log(2 * d**2 + 1))
    a, B_x = a[:, :, None] / np.sqrt(m), tokens[:, :1, None]
    bracket = a * (1 + np.log(B_x / a)) + B_x * np.sqrt(math.log(2 * d) / m)
    reach = value.sum(1) * tokens[:, 2]
    small = np.einsum("eh,ehs->es", value, bracket)
    network = np.where(np.arange(count)[:, None] % 2, small, reach[:, None])
    rho = np.mean(readout * (reach + bias)[:, None] + constants * constant, axis=1)
    complexity = np.mean(readout, 1)[:, None] * (network + twice * bias[:, None] / np.sqrt(m))
    complexity += np.mean(constant, 1)[:, None] / np.sqrt(m)
    right = 2 * complexity + 3 * rho[:, None] * np.sqrt(math.log(2 / _DELTA) / (2 * m))
    rows = [ROWS.index(("1,1", "sharp")), ROWS.index(("1,1", "printed"))]
    found = np.asarray(found)[np.arange(count), np.array(rows)[np.arange(count) % 2]]
    return np.column_stack([found, np.asarray(spread)]), np.column_stack([right, rho])
