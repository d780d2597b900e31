r"""Attention sinks (Gu et al. 2025): what a Transformer does with one token repeated t times.

Our text of the four propositions of appendix C.1 comes from a third party's transcription, not from
the paper. A_{t,j} is the weight that the last of t equal tokens gives to the j-th; a sink is a
first token whose mean weight over the rows is above epsilon = 0.3.
"""

import jax
import jax.numpy as jnp
import numpy as np

import attlas as at
from attlas.claims.claim import Sides, Source, Status
from attlas.models.attention.rotation import turn
from attlas_audit.library.softmax_weights import repeated_token_ceiling

LENGTH = 24
"""Rows of the causal maps: all t from 1 to 24 in each instance."""
EPSILON = 0.3
POSITION = np.arange(1.0 * LENGTH)
DISTANCE = POSITION[:, None] - POSITION[None, :]


def causal(logits):
    """Weights of a causal map."""
    return jax.nn.softmax(jnp.where(DISTANCE >= 0, logits, -jnp.inf), axis=-1)


def words(rng, count):
    """One token of 6 coordinates, a head of 4, the slope of ALiBi for each of 8 heads or any."""
    slope = 2.0 ** -rng.integers(1, 9, count)
    slope[::2] = 10 ** rng.uniform(-3, 0.5, len(slope[::2]))
    x = rng.normal(size=(count, 6))
    W_Q, W_K = 10 ** rng.uniform(-1, 0.5, (2, count, 1, 1)) * rng.normal(size=(2, count, 6, 4))
    return {"x": x, "W_Q": W_Q, "W_K": W_K, "slope": slope}


@at.identity(
    "Proposition 1",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=words,
    alike=True,
    roundings=256,
    controls=[at.Control("with ALiBi's bias", bias=1.0)],
)
def no_positions(x, W_Q, W_K, slope, *, bias=0.0):
    r"""$$A_{t,j}=\frac1t\quad(j\le t)$$

    Without positions (NoPE) all logits of a row are the same number.
    """
    X = jnp.broadcast_to(x, (LENGTH, 6))
    Q, K = X @ W_Q, X @ W_K
    uniform = jnp.where(DISTANCE >= 0, 1 / (1 + POSITION[:, None]), 0.0)
    # Logits that are equal may be rounded differently.
    size = (1 + jnp.linalg.norm(Q[0]) * jnp.linalg.norm(K[0])) * uniform
    return Sides(causal(Q @ K.T - bias * slope * DISTANCE), uniform, magnitude=size)


@at.identity(
    "Proposition 3, all weights",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=words,
    alike=True,
    roundings=4096,
    controls=[
        at.Control("twice the slope", factor=2.0),
        at.Control("an infinite row: no denominator", rows=0.0),
    ],
)
def alibi_weights(x, W_Q, W_K, slope, *, factor=1.0, rows=1.0):
    r"""$$A_{t,j}=\frac{e^{-m(t-j)}\,(1-e^{-m})}{1-e^{-mt}}$$

    ALiBi of slope m adds $-m(t-j)$ to logits that are equal: a geometric series. The paper stops at
    the quotient of sums. A first token gets the least weight of its row, the query itself the most.
    """
    X = jnp.broadcast_to(x, (LENGTH, 6))
    Q, K = X @ W_Q, X @ W_K
    m = factor * slope
    series = jnp.expm1(-m) / jnp.where(rows > 0, jnp.expm1(-m * (1 + POSITION[:, None])), -1.0)
    right = jnp.where(DISTANCE >= 0, jnp.exp(-m * np.maximum(DISTANCE, 0.0)) * series, 0.0)
    # Logits of size |q||k| and m t are rounded before they are compared.
    size = (1 + jnp.linalg.norm(Q[0]) * jnp.linalg.norm(K[0]) + slope * LENGTH) * right
    return Sides(causal(Q @ K.T - slope * DISTANCE), right, magnitude=size)


def biases(rng, count):
    """Falls of a bias from one distance to the next; constant from some distance on, or at once."""
    falls = 10 ** rng.uniform(-3, 1, (count, 1)) * rng.exponential(size=(count, LENGTH - 1))
    until = rng.integers(0, LENGTH, count)
    return {"falls": np.where(np.arange(1, LENGTH) <= until[:, None], falls, 0.0)}


def _relative(falls):
    """Weights under a bias that falls with the distance."""
    bias = -jnp.concatenate([jnp.zeros(1), jnp.cumsum(falls)])
    return causal(bias[np.maximum(DISTANCE, 0).astype(int)])


@at.inequality(
    "Proposition 2 and Proposition 3",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=biases,
    alike=True,
    search_over="falls",
    project=lambda falls: {"falls": jnp.abs(falls)},
    controls=[
        at.Control("a bias that rises with the distance", sign=-1.0),
        at.Control("99 hundredths of 1/t", factor=0.99),
    ],
)
def falling_bias(falls, *, sign=1.0, factor=1.0):
    r"""$$A_{t,1}\le\frac1t\quad\text{for }\langle q_t,k_j\rangle=qk^\top+g(t-j),\ g\text{ not
    increasing}$$

    Relative positions and ALiBi, t from 1 to 24: the first token gets the least weight of its row,
    and the least of t weights is at most 1/t. Equality for a constant g.
    """
    return _relative(sign * falls)[:, 0], factor / (1 + POSITION)


@at.inequality(
    "Propositions 1 to 3, the score",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=biases,
    search_over="falls",
    project=lambda falls: {"falls": jnp.abs(falls)},
    controls=[
        at.Control("a bias that rises with the distance", sign=-1.0),
        at.Control("ln T in place of H_T", harmonic=0.0),
    ],
)
def score_of_a_falling_bias(falls, *, sign=1.0, harmonic=1.0):
    r"""$$\alpha_1=\frac1T\sum_{t\le T}A_{t,1}\le\frac{H_T}T,\quad H_T=\sum_{t\le T}\frac1t$$

    T = 24, where it is 0.157; at T = 64, as in the paper's tables, 0.074. Both are below the
    threshold 0.3, so the metric reports no attention sink. For T at most 5 it would not:
    $H_5/5=.457$, and uniform attention counts as a sink.
    """
    total = np.sum(1 / (1 + POSITION))
    right = harmonic * total + (1 - harmonic) * jnp.log(1.0 * LENGTH)
    return jnp.mean(_relative(sign * falls)[:, 0]), right / LENGTH


def lengths(rng, count):
    """All t from 4 to 16, at distances where the bucket is the distance."""
    del rng, count
    return {"t": np.arange(4.0, 17.0)}


@at.erratum(
    "Equation (6) with Proposition 2",
    Source.RECALLED,
    sample=lengths,
    enumerates=13,
    reason="as transcribed, g is the bucket itself and is added: it grows with the distance",
    corrected=at.Control("subtracted, as section 2 writes it", sign=-1.0),
    controls=[at.Control("half as strong, still added", sign=0.5)],
)
def bucket_bias(t, *, sign=1.0):
    r"""$$A_{t,1}\le.3\quad\text{for }\langle q_t,k_j\rangle=qk^\top+g(t-j),\ g(i)=i\ (i<B/2)$$

    B = 32, t = 4 to 16. As transcribed, equation (6) defines $g(i-j)$ as the number of the bucket,
    appendix B adds it and section 2 subtracts it; the proof of Proposition 2 says that g does not
    increase, then that the farthest tokens have the largest weights. Added, the first token gets
    $(1-e^{-1})/(1-e^{-t})\ge.632$: a sink. Subtracted, $e^{1-t}$ times that.
    """
    j = jnp.arange(16.0)
    logits = jnp.where(j < t, sign * (t - 1 - j), -jnp.inf)
    return jax.nn.softmax(logits)[0], jnp.asarray(EPSILON)


def rotations(rng, count):
    """A query and a key of two pairs, and their speeds; half a turn per token in every third.

    There the second of two tokens has the query's direction and the first the opposite one; keys
    equal the query where the own token is to win, and its negative where the first is.
    """
    speed = 10 ** rng.uniform(-2, 0.5, (count, 2))
    q = 10 ** rng.uniform(-1, 0.3, (count, 1)) * rng.normal(size=(count, 4))
    k = rng.normal(size=(count, 4))
    speed[::3], k[::3] = np.pi, q[::3] * rng.choice([-1.0, 1.0], (len(q[::3]), 1))
    return {"q": q, "k": k, "speed": speed}


def _rotary(q, k, speed):
    """Weights of a causal map with rotary positions, and the size |q||k| of its logits."""
    angle = POSITION[:, None] * speed[None]
    rows = [turn(jnp.broadcast_to(vector, (LENGTH, 4)), angle, False) for vector in (q, k)]
    return causal(rows[0] @ rows[1].T), jnp.sqrt(jnp.sum(q**2) * jnp.sum(k**2))


@at.inequality(
    "Proposition 4",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=rotations,
    alike=True,
    search_over=("q", "k", "speed"),
    roundings=1024,
    count=96,
    controls=[
        at.Control("1.9 in place of 2", exponent=1.9),
        at.Control("t in place of t - 1", less=0.0),
    ],
)
def rotary_ceiling(q, k, speed, *, exponent=2.0, less=1.0):
    r"""$$\max_jA_{t,j}\le\frac{e^{2\xi}}{e^{2\xi}+t-1},\quad\xi=|q||k|$$

    Rotary positions, t from 2 to 24 consecutive ones: every logit lies in $[-\xi,\xi]$. Attained
    for t = 2 by half a turn per token, and for no larger t.
    """
    P, xi = _rotary(q, k, speed)
    others = np.maximum(POSITION + 1 - less, 0.0)
    right = repeated_token_ceiling(exponent * xi / 2, jnp.asarray(1 + others))
    size = (1 + xi) * (1 + LENGTH * jnp.max(jnp.abs(speed)))
    return Sides(jnp.max(P, axis=1)[1:], right[1:], magnitude=size)


def _exponents():
    r"""b_t, rounded up, and where it is taken: |1 - mean of e^{i omega s}| over s = 1, ..., t - 1.

    Between two points of the grid the function exceeds them by at most 3/32 t^2 times the squared
    distance of the points.
    """
    omega = np.linspace(0.0, np.pi, 16385)
    exponents, total = [(0.0, 0.0, 0.0)], np.zeros(len(omega), dtype=complex)
    for t in range(2, LENGTH + 1):
        total += np.exp(-1j * omega * (t - 1))
        apart = total / (t - 1) - 1
        best = np.argmax(np.abs(apart))
        above = 3 / 32 * t**2 * (omega[1] - omega[0]) ** 2
        exponents.append((np.abs(apart[best]) + above, omega[best], np.pi - np.angle(apart[best])))
    return np.array(exponents).T


EXPONENTS, SPEEDS, PHASES = _exponents()


def against_the_first(rng, count):
    """Every second instance turns so that, for one t, the mean logit is the least there can be."""
    batch = rotations(rng, count)
    t = rng.integers(3, LENGTH + 1, count)[::2]
    size = 10 ** rng.uniform(-2, 1, len(t))
    phase = SPEEDS[t - 1] * (t - 1) - PHASES[t - 1]
    nothing = np.zeros(len(t))
    batch["speed"][::2, 0] = SPEEDS[t - 1]
    batch["q"][::2] = np.stack([size, nothing, nothing, nothing], axis=1)
    batch["k"][::2] = np.stack([np.cos(phase), nothing, np.sin(phase), nothing], axis=1)
    return batch


@at.inequality(
    "Proposition 4, sharpened for the first token",
    sample=against_the_first,
    status=Status.SHARPENED,
    alike=True,
    search_over=("q", "k", "speed"),
    roundings=1024,
    count=96,
    controls=[
        at.Control("a hundredth less in the exponent", factor=0.99),
        at.Control("no positions: 1/t", factor=0.0),
    ],
)
def rotary_first_token(q, k, speed, *, factor=1.0):
    r"""$$A_{t,1}\le\frac{e^{b_t\xi}}{e^{b_t\xi}+t-1},\quad
    b_t=\max_\omega\Big|1-\frac1{t-1}\sum_{s=1}^{t-1}e^{i\omega s}\Big|$$

    $b_2=2$, $b_3=1.59$, $b_{24}=1.29$ and $b_t\to1.26$: positions that follow each other cannot all
    stand against the first.
    Proof: logits are $f(s)=\sum_pa_p\cos(\psi_p-\omega_ps)$ at distance s from the first token,
    $\sum_p|a_p|\le\xi$. By Jensen $A_{t,1}^{-1}\ge1+(t-1)e^m$ with m the mean of $f(s)-f(0)$, and
    $m=\Re\sum_pa_pe^{i\psi_p}(\mu_p-1)\ge-b_t\xi$ with $\mu_p$ the mean of $e^{-i\omega_ps}$. No
    smaller exponent does: at the maximising $\omega$ the two sides agree to first order in $\xi$.
    For t from 3 to 24.
    """
    P, xi = _rotary(q, k, speed)
    right = 1 / (1 + POSITION * jnp.exp(-factor * jnp.asarray(EXPONENTS) * xi))
    size = (1 + xi) * (1 + LENGTH * jnp.max(jnp.abs(speed)))
    return Sides(P[2:, 0], right[2:], magnitude=size)


_TOKENS, _WIDTH, _HEAD, _LAYERS = 7, 6, 3, 3


def blocks(rng, count):
    """Three pre-norm blocks of two heads, and positions of the tokens."""
    d, h, L = _WIDTH, _HEAD, _LAYERS
    batch = {name: rng.normal(size=(count, L, 2, d, h)) / d**0.5 for name in ("W_Q", "W_K", "W_V")}
    return batch | {
        "W_O": rng.normal(size=(count, L, 2 * h, d)) / (2 * h) ** 0.5,
        "W_1": rng.normal(size=(count, L, d, 8)) / d**0.5,
        "W_2": rng.normal(size=(count, L, 8, d)) / 8**0.5,
        "word": rng.normal(size=(count, d)),
        "positions": rng.normal(size=(count, _TOKENS, d)),
        "slope": 10 ** rng.uniform(-1, 1, count),
    }


def _norm(H):
    centred = H - jnp.mean(H, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


@at.identity(
    "Equations (15) to (17)",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=blocks,
    alike=True,
    roundings=8192,
    controls=[
        at.Control("with learnt position vectors in the hidden states", learnt=0.1),
        at.Control("attention without its mask's normalisation", normalised=0.0),
    ],
)
def hidden_states(
    W_Q, W_K, W_V, W_O, W_1, W_2, word, positions, slope, *, learnt=0.0, normalised=1.0
):
    r"""$$h_t^l={\rm FFN}({\rm LN}(o^l+h^{l-1}))+o^l+h^{l-1},\quad
    o^l={\rm Concat}_h\big({\rm LN}(h^{l-1})W_V^{l,h}\big)W_O^l\quad\text{for every }t$$

    Three pre-norm blocks of two causal heads with ALiBi on the left; on the right the recursion of
    one token, in which no attention occurs: weights that sum to one leave equal values as they are.
    So massive activations of the first token are those of every token.
    """
    apart = jnp.arange(_TOKENS)[:, None] - jnp.arange(_TOKENS)[None, :]
    seen = apart >= 0
    uniform = jnp.where(seen, 1.0 / _TOKENS, 0.0)

    def block(states, layer):
        H, token = states
        Q, K, V, O, up, down = layer
        q, k, v = (jnp.einsum("td,hdk->htk", _norm(H), W) for W in (Q, K, V))
        logits = jnp.einsum("htk,hsk->hts", q, k) / _HEAD**0.5 - slope * apart
        P = jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)
        P = normalised * P + (1 - normalised) * uniform
        H = H + jnp.swapaxes(P @ v, 0, 1).reshape(_TOKENS, -1) @ O
        token = token + jnp.einsum("d,hdk->hk", _norm(token), V).reshape(-1) @ O
        return tuple(h + jax.nn.relu(_norm(h) @ up) @ down for h in (H, token)), None

    H = jnp.broadcast_to(word, (_TOKENS, _WIDTH)) + learnt * positions
    (H, token), _ = jax.lax.scan(block, (H, word), (W_Q, W_K, W_V, W_O, W_1, W_2))
    size = 1 + jnp.sqrt(jnp.sum(token**2)) + jnp.sqrt(jnp.sum(word**2))
    return Sides(H, jnp.broadcast_to(token, H.shape), magnitude=size)
