r"""(B1), (B2) and (A2.2): what the regularity assumptions ask for, and what follows of them.

A population is a few equally likely inputs; f has norm one on each, as model (3) asks.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

_POINTS, _P, _D = 8, 3, 2
_T, _Q, _V = 3, 2, 2
_ROUNDINGS = 64 * _POINTS
_WEIGHTS = {"W_Q": (_Q, _T), "W_K": (_Q, _T), "W_V": (_V, _T), "W1": (_V * _P, _D), "w2": (_D,)}


def populations(rng, count):
    """Inputs with their attention, and a first layer; some see half of the inputs at their best."""
    x = rng.uniform(-1, 1, (count, _POINTS, _P)) * 10 ** rng.uniform(-1, 1, (count, 1, 1))
    logits = rng.normal(size=(count, _POINTS, _P)) * six_decades(rng, count)[:, None, None]
    f = np.exp(logits - logits.max(2, keepdims=True))
    f /= np.linalg.norm(f, axis=2, keepdims=True)
    W = rng.normal(size=(count, _P, _D)) * 10 ** rng.uniform(-1, 1, (count, 1, 1))
    # One corner of the box for half of the inputs, its opposite for the others.
    corner = rng.choice([-1.0, 1.0], (count, 1, _P)) * np.repeat([1.0, -1.0], _POINTS // 2)[:, None]
    best = np.arange(count) % 2 == 0
    f[best] = f[best, :1]
    x[best] = (np.abs(x).max((1, 2), keepdims=True) * corner)[best]
    W[best] = ((x * f)[:, 0, :, None] * np.abs(W[:, :1]))[best]
    return {"x": x, "f": f, "W": W}


def _of_norm_one(f):
    f = jnp.abs(f)
    size = jnp.linalg.norm(f, axis=1, keepdims=True)
    return {"f": f / jnp.maximum(size, jnp.finfo(f.dtype).tiny)}


@inequality(
    r"(B1), $\lambda_{\max}(\Sigma_\phi) \le C_\lambda$ follows from the other bounds",
    sample=populations,
    search_over=("x", "f", "W"),
    project=_of_norm_one,
    status=Status.NEW,
    roundings=_ROUNDINGS,
    controls=[Control("1/5 in place of 1/4", share=0.2)],
)
def b1_features(x, f, W, *, share=0.25):
    r"""$$\lambda_{\max}(\Sigma_\phi) \le \tfrac14\, C_1^2 C_x^2,\quad \|f\|_2 = 1,\
    \|x\|_\infty \le C_x,\ \|w^{(1)}\|_F \le C_1$$

    (A1.2) need not assume $C_\lambda$. In a direction $v$ the features range over at most
    $C_x(\|v_+\| \|w_+\| + \|v_-\| \|w_-\|) \le C_1 C_x$, and a variance is at most a quarter of the
    range squared. Attained by inputs at two opposite corners.
    """
    phi = rectify((x * f) @ W)
    phi = phi - jnp.mean(phi, axis=0)[None, :]
    bound = share * jnp.sum(W**2) * jnp.max(jnp.abs(x)) ** 2
    return jnp.linalg.eigvalsh(phi.T @ phi / _POINTS)[-1], bound


@erratum(
    "A.2, (A1.3) 'can always be achieved by making the data centered'",
    witness=lambda: {"x": np.array([-1.0, 1.0])},
    reason="ReLU features of centred inputs are not centred",
    corrected=Control("corrected: features less their mean", centred=1.0),
)
def b1_centred(x, *, centred=0.0):
    r"""$$x = y = \pm 1,\ w^{(1)} = w^{(2)} = 1: \quad
    \big|\mathbb{E}\, w^{(2)} \phi(w^{(1)} x)\big| \le |\mathbb{E}\, y| = 0$$

    (A1.3) asks for it at all weights of $S$. Inputs and outputs are centred, and the network has
    the mean 1/2. An output bias, or features less their mean, as our claims on Theorem 1 take
    them, achieve it.
    """
    phi = rectify(x)
    return Sides(jnp.abs(jnp.mean(phi - centred * jnp.mean(phi))), jnp.abs(jnp.mean(x)))


def lines(rng, count):
    """A teacher on the line and students; some of them fit all inputs but zero."""
    x = np.concatenate([np.zeros((count, 1)), rng.normal(size=(count, _POINTS - 1))], axis=1)
    # With one input on each side two units fit both exactly.
    x[::2] = np.where(x[::2] > 0, 1.0, np.where(x[::2] < 0, -1.0, 0.0))
    x[:, 1], x[:, 2] = np.abs(x[:, 1]), -np.abs(x[:, 2])
    teacher = rng.normal(size=(count, 2)) * 10 ** rng.uniform(-1, 1, (count, 1))
    labels = np.maximum(x, 0) * teacher[:, :1] + np.maximum(-x, 0) * teacher[:, 1:]
    student = rng.normal(size=(count, 2)) + teacher
    exact = teacher - labels.mean(1, keepdims=True)
    student[::2] = exact[::2]
    return {"x": x, "teacher": teacher, "student": student}


@inequality(
    "(B1), centred outputs leave the model",
    sample=lines,
    search_over=("teacher", "student"),
    status=Status.NEW,
    roundings=_ROUNDINGS,
    controls=[Control("a bias of the output", bias=1.0), Control("1.1 times", factor=1.1)],
)
def b1_centred_outputs(x, teacher, student, *, bias=0.0, factor=1.0):
    r"""$$\mathbb{E}\big(w^{(2)\top}\phi(w^{(1)}x) - (y - \mathbb{E}y)\big)^2 \ge P(x = 0)\,
    (\mathbb{E}y)^2,\quad y = w_*^{(2)\top}\phi(w_*^{(1)}x)$$

    A network without biases is 0 at $x = 0$. So centring $y$ for (A1.3) makes (A1) false where
    an input is zero: the two hold together only with a bias. Attained by the students that fit
    every other input.
    """

    def outputs(weights):
        return rectify(jnp.stack([x, -x], axis=1)) @ weights

    y = outputs(teacher)
    error = outputs(student) - bias * jnp.mean(y) - (y - jnp.mean(y))
    share = jnp.mean(jnp.where(x == 0, 1.0, 0.0))
    size = jnp.sum(teacher**2) + jnp.sum(student**2)
    return Sides(
        factor * share * jnp.mean(y) ** 2, jnp.mean(error**2), magnitude=size * jnp.max(x**2)
    )


def pairs(rng, count):
    """Words, a teacher (..._t) with noise and a student, both networks with self-attention."""
    batch = {"x": rng.uniform(-1, 1, (count, _POINTS, _T, _P))}
    for name, shape in _WEIGHTS.items():
        for end in ("", "_t"):
            batch[name + end] = rng.normal(size=(count, *shape)) * 10 ** rng.uniform(
                -0.5, 0.5, (count, *(1 for _ in shape))
            )
    for name in ("W_Q", "W_Q_t"):
        batch[name] *= six_decades(rng, count, 0, 0)[:, None, None]
    return {
        **batch,
        "noise": 10 ** rng.uniform(-1, 1, count),
        "c": rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-2, 2, count),
    }


def _outputs(x, W_Q, W_K, W_V, W1, w2):
    return jax.vmap(SelfAttentionMLP(W_Q, W_K, W_V, W1, w2))(x)


def _error(x, weights):
    """The outputs of student less those of the teacher, and their largest size."""
    h, truth = (_outputs(x, *(weights[name + end] for name in _WEIGHTS)) for end in ("", "_t"))
    return h - truth, jnp.max(jnp.abs(h)) + jnp.max(jnp.abs(truth))


@identity(
    "(A2.2), what the error of Theorem 2 is measured against",
    Source.FOUND,
    sample=pairs,
    status=Status.RECONSTRUCTED,
    count=32,
    roundings=_ROUNDINGS,
    controls=[
        Control("noise of the sign of the error", independent=False),
        Control("0.99 of the variance", share=0.99),
    ],
)
def a2_2_error(x, noise, *, independent=True, share=1.0, **weights):
    r"""$$y = h_*(x) + \varepsilon,\ x \perp\!\!\!\perp \varepsilon: \quad
    \mathbb{E}(h(x) - y)^2 = \mathbb{E}(h(x) - \mathbb{E}(y|x))^2 + \mathrm{Var}\,\varepsilon$$

    $h_*$ is a network with self-attention, and $\varepsilon = \pm C_4$ is sub-Gaussian with the
    constant $C_4^2$. So (A2.2) makes the error of Theorem 2 the excess risk. Noise that depends on
    the words does not.
    """
    u, size = _error(x, weights)
    signs = jnp.asarray([1.0, -1.0])
    signs = signs[:, None] * (jnp.ones_like(u) if independent else jnp.sign(u) * signs[:, None])
    risk = jnp.mean((u - noise * signs) ** 2)
    return Sides(risk, jnp.mean(u**2) + share * noise**2, magnitude=size**2 + noise**2)


@identity(
    "(B2), only the product of $w_Q$ and $w_K$ counts",
    sample=pairs,
    status=Status.NEW,
    alike=True,
    count=32,
    roundings=16 * _ROUNDINGS,
    controls=[Control("$c$ for both", power=1)],
)
def b2_balanced(x, W_Q, W_K, W_V, W1, w2, c, *, power=-1, **_):
    r"""$$h(x; c\, w_Q, c^{-1} w_K) = h(x; w_Q, w_K) \quad (c \ne 0)$$

    So the bounds $C_5$ and $C_6$ are no property of the network: at
    $c^2 = \|w_K\| / \|w_Q\|$ both are $\sqrt{\|w_Q\| \|w_K\|}$, which is the least
    $\eta_b = C_5 + C_6$ of Theorem 2.
    """
    left = _outputs(x, c * W_Q, c**power * W_K, W_V, W1, w2)
    logits = jnp.max(jnp.abs(x)) ** 2 * jnp.linalg.norm(W_Q) * jnp.linalg.norm(W_K)
    size = jnp.linalg.norm(W_V) * jnp.linalg.norm(W1) * jnp.linalg.norm(w2)
    return Sides(left, _outputs(x, W_Q, W_K, W_V, W1, w2), magnitude=size * (1 + logits))
