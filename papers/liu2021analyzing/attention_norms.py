r"""Norms of attention weights: erratum 2 of Theorem 1, and what a softmax has."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import erratum, inequality

_P = 6


def logits(rng, count):
    """Logits from flat to one-hot, how many weights lead, and the part by which tau is raised."""
    return {
        "logits": rng.normal(size=(count, _P)) * 10 ** rng.uniform(-2, 1.5, (count, 1)),
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
    controls=[Control(r"$\tau$, not squared", squared=False)],
)
def erratum_2_corrected(logits, kept, raised, *, squared=True):
    r"""$$\|f\|_2 = 1,\ \|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad
    \|f_{\mathrm{sub}}\|_2^2 \le 2 \tau - \tau^2$$

    Equality whenever $\tau$ is the smallest that (A2) allows, for all weights.
    """
    return rest_against_tau(logits, kept, raised, squared)


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
