r"""The norm of the features in Theorem 1: as the proof has it, and what it is.

f is a softmax scaled to norm one, from nearly uniform to one-hot; C_1 = ||W||_F and
C_x = max |x_j|, so that nothing is lost in the constants.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.models.rectifier import rectify

_CHAIN = "liu2021analyzing/theorem-1"
_P, _D = 6, 3


def first_layers(rng, count):
    """Random networks; in every other instance x is at a corner and W points along x o f."""
    x = rng.uniform(-1, 1, (count, _P)) * 10 ** rng.uniform(-1, 1, (count, 1))
    logits = rng.normal(size=(count, _P)) * six_decades(rng, count, -2, 1)[:, None]
    f = np.exp(logits - logits.max(1, keepdims=True))
    W = rng.normal(size=(count, _P, _D)) * 10 ** rng.uniform(-1, 1, (count, 1, 1))
    corner = np.arange(count) % 2 == 0
    x = np.where(corner[:, None], np.abs(x).max(1, keepdims=True) * np.sign(x), x)
    along = (x * f)[:, :, None] * np.abs(W[:, :1, :])
    return {
        "x": x,
        "f": f / np.linalg.norm(f, axis=1, keepdims=True),
        "W": np.where(corner[:, None, None], along, W),
        "kept": rng.integers(1, _P, count),
    }


def of_norm_one(f):
    """Weights that are not negative and of norm one."""
    f = jnp.abs(f)
    return {"f": f / jnp.maximum(jnp.linalg.norm(f), jnp.finfo(f.dtype).tiny)}


def feature_norm(x, f, W):
    """||phi(W' (x o f))||."""
    return jnp.linalg.norm(rectify((x * f) @ W))


def radii(x, W):
    """C_1 C_x, without the norm of f."""
    return jnp.linalg.norm(W) * jnp.max(jnp.abs(x))


def printed_factor(f, kept, lead=1.0):
    """sqrt(2) (sqrt(s0) + tau sqrt(p)) at the smallest tau of (A2)."""
    largest = jnp.where(jnp.arange(_P) < kept, -jnp.sort(-f), 0.0)
    tau = jnp.maximum(1 - jnp.linalg.norm(largest), 0.0)
    return np.sqrt(2) * (lead * jnp.sqrt(kept.astype(f.dtype)) + tau * np.sqrt(_P))


@inequality(
    "Proof of Theorem 1, the norm of x o f",
    sample=first_layers,
    status=Status.SHARPENED,
    proof_step=ProofStep(_CHAIN, 1),
    search_over=("x", "f"),
    controls=[Control("the mean $|x_j|$ in place of the largest", mean=True)],
)
def theorem_1_entrywise_product(x, f, *, mean=False):
    r"""$$\|x \odot f\|_2 \le C_x \|f\|_2 \quad \text{for}\quad \|x\|_\infty \le C_x$$

    The print has $\sqrt{s_0} C_x$ for the leading part and $\tau \sqrt{p} C_x$ for the rest, by
    $\|x\| \|f\|$ where $\max_j |x_j| \|f\|$ holds: this one line makes all of its dependence on
    $s_0$ and $p$ but for the number of parameters. Equality at every corner of the box.
    """
    C_x = (jnp.mean if mean else jnp.max)(jnp.abs(x))
    return jnp.linalg.norm(x * f), C_x * jnp.linalg.norm(f)


@inequality(
    "Proof of Theorem 1, before (14)",
    Source.FOUND,
    sample=first_layers,
    search_over=("x", "f", "W"),
    project=of_norm_one,
    controls=[
        Control(r"$\tau \sqrt{p}$ alone", lead=0.0),
        Control("three tenths of the bound", share=0.3),
    ],
)
def theorem_1_features_printed(x, f, W, kept, *, lead=1.0, share=1.0):
    r"""$$\|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2
    \le \sqrt{2} (\sqrt{s_0} + \tau \sqrt{p}) C_1 C_x$$

    True, though the remaining part is bounded wrongly on the way (erratum-2), because it is loose
    by $\sqrt{2} (\sqrt{s_0} + \tau \sqrt{p})$: the best ratio is $1/\sqrt{2}$, at $s_0 = 1$,
    $\tau = 0$. $\tau$ is the smallest that (A2) allows.
    """
    return feature_norm(x, f, W), share * printed_factor(f, kept, lead) * radii(x, W)


@inequality(
    "Proof of Theorem 1, before (14), sharpened",
    sample=first_layers,
    status=Status.SHARPENED,
    search_over=("x", "f", "W"),
    project=of_norm_one,
    proof_step=ProofStep(_CHAIN, 2),
    controls=[Control(r"the norm $1/\sqrt{p}$ of uniform attention", uniform=True)],
)
def theorem_1_features(x, f, W, *, uniform=False):
    r"""$$\|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2 \le C_1 C_x \|f\|_2$$

    No concentration on the right: with $\|f\|_2 = 1$, as the paper asks, attention weights on one
    input and equal weights have the same bound. With a softmax's own norm equal weights have the
    smaller one, which is what the control breaks.
    """
    norm = 1 / np.sqrt(_P) if uniform else jnp.linalg.norm(f)
    return feature_norm(x, f, W), radii(x, W) * norm


@identity(
    r"Erratum 1: the factor $(\sqrt{s_0} + \tau \sqrt p)^4$",
    sample=first_layers,
    status=Status.NEW,
    controls=[
        Control(r"$\sqrt{2} (\sqrt{s_0} + \tau \sqrt{p}) C_1 C_x$, as printed", printed=True)
    ],
)
def theorem_1_features_attained(x, f, W, kept, *, printed=False):
    r"""$$\max_{\|x\|_\infty \le C_x,\, \|w^{(1)}\|_F \le C_1}
    \|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2 = C_1 C_x \|f\|_2$$

    Evaluated at the maximiser; that nothing is larger is theorem-1-features. For every $f$ the
    maximum is the same number $C_1 C_x$, however few weights count: the advantage $p^2/s_0^2$ of
    Theorem 1 over Corollary 1 (140 at $p = 130$, $s_0 = 11$) is the slack of a bound. A known fixed
    support still leaves $s_0 d$ of the $pd$ parameters (theorem-1-parameters).
    """
    # The corner x = C_x sign(x) and W along x o f, of the given norm.
    corner = jnp.where(x < 0, -1.0, 1.0) * jnp.max(jnp.abs(x))
    along = (corner * f)[:, None] * jnp.array([1.0, 0.0, 0.0])[None, :]
    along = along / jnp.linalg.norm(along) * jnp.linalg.norm(W)
    factor = printed_factor(f, kept) if printed else jnp.linalg.norm(f)
    return feature_norm(corner, f, along), factor * radii(corner, along)


# Norms of attention weights: erratum 2 of Theorem 1, and what a softmax has.


def logits(rng, count):
    """Logits from flat to one-hot, how many weights lead, and the part by which tau is raised."""
    return {
        "logits": rng.normal(size=(count, _P)) * six_decades(rng, count, -2, 1.5)[:, None],
        "kept": rng.integers(1, _P, count),
        # Half of the instances have the smallest tau that (A2) allows.
        "raised": np.maximum(rng.uniform(-1, 1, count), 0),
    }


def rest_and_tau(logits, kept, raised):
    """The norm of all but the leading weights, where all have norm one together, and tau."""
    falling = -jnp.sort(-jax.nn.softmax(logits))
    falling = falling / jnp.linalg.norm(falling)
    first = jnp.arange(falling.size) < kept
    least = jnp.maximum(1 - jnp.linalg.norm(jnp.where(first, falling, 0.0)), 0.0)
    remainder = jnp.linalg.norm(jnp.where(first, 0.0, falling))
    return remainder, least + raised * (1 - least)


def rest_against_tau(logits, kept, raised, squared):
    """Both sides of erratum 2; the rounding of squares is that of their sum 1."""
    remainder, tau = rest_and_tau(logits, kept, raised)
    sides = (remainder**2, 2 * tau - tau**2) if squared else (remainder, tau)
    return Sides(*sides, magnitude=jnp.ones_like(tau))


def one_leading():
    """Two weights of norms 0.9 and sqrt(0.19), so that tau = 0.1 with s0 = 1."""
    return {
        "logits": np.log(np.array([0.9, np.sqrt(0.19)])),
        "kept": np.asarray(1),
        "raised": np.asarray(0.0),
    }


@erratum(
    r"Proof of Theorem 1, $f_{sub}$",
    witness=one_leading,
    reason="squares of norms add up, not the norms",
    corrected=Control(r"$\sqrt{2 \tau - \tau^2}$", squared=True),
)
def erratum_2(logits, kept, raised, *, squared=False):
    r"""$$\|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad \|f_{\mathrm{sub}}\|_2 \le \tau,
    \quad \|f\|_2 = \|f_{\mathrm{lead}}\|_2 + \|f_{\mathrm{sub}}\|_2 = 1$$

    $\tau = .1$, $s_0 = 1$: the rest has norm 0.436, not 0.1.
    """
    return rest_against_tau(logits, kept, raised, squared)


@inequality(
    r"Proof of Theorem 1, $f_{sub}$, corrected",
    sample=logits,
    status=Status.CORRECTED,
    search_over=("logits", "raised"),
    project=lambda raised: {"raised": jnp.clip(raised, 0.0, 1.0)},
    controls=[Control(r"half of it, $\tau - \tau^2 / 2$", part=0.5)],
)
def erratum_2_corrected(logits, kept, raised, *, part=1.0):
    r"""$$\|f\|_2 = 1,\ \|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad
    \|f_{\mathrm{sub}}\|_2^2 \le 2 \tau - \tau^2$$

    Equality whenever $\tau$ is the smallest that (A2) allows, for all weights.
    """
    remainder, tau = rest_and_tau(logits, kept, raised)
    return Sides(remainder**2, part * (2 * tau - tau**2), magnitude=jnp.ones_like(tau))


@inequality(
    r"Section 3.1, below (3), '$\|f(x)\|_2 = 1$, as the sum one attention weights'",
    sample=logits,
    status=Status.CORRECTED,
    search_over="logits",
    controls=[Control("the ends exchanged", exchanged=True)],
)
def erratum_3_corrected(logits, *, exchanged=False):
    r"""$$\frac{1}{\sqrt{p}} \le \|\mathrm{softmax}(z)\|_2 \le 1$$

    So a softmax has Euclidean norm one only where it is one-hot; four equal weights have $1/2$.
    Scaling to norm one multiplies by up to $\sqrt{p}$, most where it is flat. With a softmax's own
    normalisation a bound through norms thus prefers uniform attention, by $p^2$ at the fourth
    power: the opposite of the paper's conclusion.
    """
    norm = jnp.linalg.norm(jax.nn.softmax(logits))
    low, high = jnp.full_like(norm, 1 / np.sqrt(_P)), jnp.ones_like(norm)
    low, high = (high, low) if exchanged else (low, high)
    return jnp.stack([low, norm]), jnp.stack([norm, high])
