r"""The attention models of the paper, each against a transcription of its formulas.

Numbers of words, entries and units all differ, and no matrix is symmetric, so that no axis can be
taken for another.
"""

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Source
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity
from liu2021analyzing.library.models.deep_self_attention import (
    DeepSelfAttention,
    SelfAttentionLayer,
)
from liu2021analyzing.library.models.fixed_attention import EuclideanAttention, SoftmaxAttention
from liu2021analyzing.library.models.recurrent_attention import NetworkScore, RecurrentAttention
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import AttendedTwoLayer, MaskedTwoLayer, TwoLayer

_T, _P, _Q, _V, _D, _R = 3, 4, 2, 5, 6, 2
_SHAPES = {
    "x": (_T, _P), "W_Q": (_Q, _T), "W_K": (_Q, _T), "W_V": (_V, _T), "W1": (_V * _P, _D),
    "w2": (_D,), "V1": (_V, _D), "V2": (_T, _D), "V_s": (_Q, _R), "V_x": (_Q, _T), "v": (_Q,),
    "W_s": (_R, _R), "W_c": (_R, _T), "b": (_R,), "R1": (_T, _D), "b1": (_D,),
}  # fmt: skip


def networks(rng, count):
    """One input and all weights; those of the scores span six decades."""
    batch = {name: rng.normal(size=(count, *shape)) for name, shape in _SHAPES.items()}
    batch["W_Q"] *= six_decades(rng, count, 0, 0)[:, None, None]
    batch["v"] *= six_decades(rng, count, 0, 0)[:, None]
    return batch


def weights(x, W_Q, W_K, scale, by_query=True):
    """The columns softmax(K Q^z / sqrt(d_q)), one after the other; or rows, which is wrong."""
    K, Q = (W_K @ x).T, (W_Q @ x).T
    lists = [scale * K @ row for row in Q] if by_query else [scale * Q @ row for row in K]
    shares = [jnp.exp(logits - jnp.max(logits)) for logits in lists]
    return jnp.stack([part / jnp.sum(part) for part in shares], axis=1 if by_query else 0)


def largest_logit(x, W_Q, W_K):
    """One and the largest logit: the rounding of logits is one of their weights."""
    return 1 + jnp.max((jnp.abs(W_K) @ jnp.abs(x)).T @ (jnp.abs(W_Q) @ jnp.abs(x)))


def relu(z):
    """The unit, written out."""
    return jnp.maximum(z, 0.0)


def vec(values):
    """The columns below each other."""
    return jnp.concatenate([values[:, z] for z in range(values.shape[1])])


@identity(
    "Section 2, (1) and (2), and the tempered softmax",
    Source.FOUND,
    sample=networks,
    controls=[
        Control("the softmax over queries", by_query=False),
        Control(r"without $\sqrt{d_q}$", root=0.0),
    ],
)
def section_2_self_attention(x, W_Q, W_K, W_V, W1, w2, b1, *, by_query=True, root=0.5):
    r"""$$a^{(z)} = \mathrm{softmax}\left( \frac{r\, Q^z K^\top}{\sqrt{d_q}} \right), \quad
    y = w^{(2) \top} \phi(\langle w^{(1)}, \mathrm{vec}(w_V x a) \rangle + b), \quad r = 1, 5$$

    $r = 5$ is section 6's tempered softmax; $b = 0$ in the paper.
    """
    matrices = W_Q, W_K, W_V, W1, w2, b1
    left = [SelfAttentionMLP(*matrices)(x), SelfAttentionMLP(*matrices, temperature=0.2)(x)]
    attention = [weights(x, W_Q, W_K, r / _Q**root, by_query) for r in (1.0, 5.0)]
    right = [relu(vec(W_V @ x @ a) @ W1 + b1) @ w2 for a in attention]
    size = jnp.sum(jnp.abs(W_V) @ jnp.abs(x)) * jnp.linalg.norm(W1) * jnp.linalg.norm(w2)
    return Sides(jnp.stack(left), jnp.stack(right), size * largest_logit(x, W_Q, W_K))


@identity(
    "Appendix A.4, two layers",
    Source.FOUND,
    sample=networks,
    controls=[Control("the first layer's attention in both", own=False)],
)
def appendix_a_4_model(x, W_Q, W_K, W_V, V1, V2, W1, w2, *, own=True):
    r"""$$h(x) = w_{D2}^\top \phi(\langle w_{D1}, \mathrm{vec}(w_V x_1 a_1) \rangle), \quad
    x_1 = w_{12}\, \phi(w_{11}^\top w_V x a)$$

    Words keep their places; sizes as in `deep_self_attention`, for the print's do not fit.
    """
    layer = SelfAttentionLayer(W_Q, W_K, W_V, V1, V2)
    model = DeepSelfAttention((layer,), SelfAttentionMLP(W_K, W_Q, W_V, W1, w2))
    first = weights(x, W_Q, W_K, _Q**-0.5)
    inner = V2 @ relu(V1.T @ (W_V @ x @ first))
    last = weights(inner, W_K, W_Q, _Q**-0.5) if own else first
    values = W_V @ inner
    size = jnp.sum(jnp.abs(values)) * jnp.linalg.norm(W1) * jnp.linalg.norm(w2)
    size *= largest_logit(x, W_Q, W_K) * largest_logit(inner, W_K, W_Q)
    return Sides(model(x), relu(vec(values @ last) @ W1) @ w2, size)


@identity(
    "Appendix B, the recurrence",
    Source.FOUND,
    sample=networks,
    controls=[
        Control("the score sees the new state", ahead=True),
        Control("the update does not see the context", context=0.0),
    ],
)
def appendix_b_model(x, V_s, V_x, v, W_s, W_c, b, R1, w2, b1, *, ahead=False, context=1.0):
    r"""$$s_k = f(s_{k-1}, c_{k-1}), \quad e_{kj} = \mathrm{score}(s_{k-1}, x^j), \quad
    \alpha_{kj} = \frac{e^{e_{kj}}}{\sum_i e^{e_{ki}}}, \quad c_k = \sum_j \alpha_{kj} x^j, \quad
    y = w^{(2) \top} \phi(\langle w^{(1)}, c_T \rangle)$$

    Four steps, all weights and the output; the exponential that the print lacks is there.
    $f$ and score are tanh units.
    """
    model = RecurrentAttention(W_s, W_c, b, NetworkScore(V_s, V_x, v), TwoLayer(R1, w2, b1), 4)
    state, c, rows = jnp.zeros(_R), jnp.zeros(_T), []
    for _ in range(4):
        new = jnp.tanh(W_s @ state + context * W_c @ c + b)
        seen = new if ahead else state
        scores = [v @ jnp.tanh(V_s @ seen + V_x @ x[:, j]) for j in range(_P)]
        shares = jnp.exp(jnp.stack(scores))
        rows.append(shares / jnp.sum(shares))
        state, c = new, sum(rows[-1][j] * x[:, j] for j in range(_P))
    output = relu(c @ R1 + b1) @ w2
    left = jnp.concatenate([model.attention(x)[1:].reshape(-1), model(x)[None]])
    right = jnp.concatenate([jnp.stack(rows[1:]).reshape(-1), output[None]])
    steep = 1 + jnp.sum(jnp.abs(v))
    return Sides(left, right, (1 + jnp.abs(right)) * steep)


def known_weights(rng, count):
    """Inputs, a known attention matrix, a mask, two layers, a sharpness and a temperature."""
    shapes = {"x": (_P,), "M": (_P, _P), "W1": (_P, _D), "w2": (_D,)}
    batch = {name: rng.normal(size=(count, *shape)) for name, shape in shapes.items()}
    batch["M"] *= six_decades(rng, count, 0, 0)[:, None, None]
    return batch | {"mask": rng.uniform(0, 1, (count, _P))}


@identity(
    "Section 2, the baseline; (3) with known weights; appendix D with a mask",
    Source.FOUND,
    sample=known_weights,
    controls=[
        Control("weights of sum one", power=1),
        Control("the weights squared", weights=2),
        Control("ReLU for the softplus", smooth=False),
    ],
)
def section_2_known_weights(x, M, W1, w2, mask, *, power=2, weights=1, smooth=True):
    r"""$$y = w^{(2) \top} \phi_{\tau_0}(\langle w^{(1)}, x \odot f(x) \rangle), \quad
    f = \frac{\mathrm{softmax}(2 M x)}{\|\cdot\|_2}, \quad f = a \in [0, 1]^p,\ \quad
    \phi_{\tau_0}(z) = \tfrac1{\tau_0} \log(1 + e^{\tau_0 z})$$

    $\tau_0 = 3$; the softmax has temperature $1/2$.
    """
    layers = TwoLayer(W1, w2, sharpness=3.0)
    attention = EuclideanAttention(SoftmaxAttention(M, 0.5))
    left = [AttendedTwoLayer(layers, attention)(x), MaskedTwoLayer(layers, mask)(x)]
    shares = jnp.exp(2 * M @ x - jnp.max(2 * M @ x))
    f = shares / jnp.sum(shares**power) ** (1 / power)
    right = []
    for mask_of_inputs in (f, mask):
        z = (x * mask_of_inputs**weights) @ W1
        units = jnp.log(1 + jnp.exp(-jnp.abs(3 * z))) / 3 if smooth else 0.0
        right.append((relu(z) + units) @ w2)
    size = (1 + jnp.linalg.norm(x) * jnp.linalg.norm(W1)) * jnp.linalg.norm(w2)
    steep = 1 + jnp.max(jnp.abs(M) @ jnp.abs(x))
    return Sides(jnp.stack(left), jnp.stack(right), size * steep)
