r"""Norms of attention weights: errata 2 and 3 of Theorem 1, and what is right."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Control, Kind, Sides, Status
from attlas.core.statement import erratum, inequality

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
    rest = jnp.linalg.norm(jnp.where(first, 0.0, falling))
    return rest, least + raised * (1 - least)


def rest_against_tau(logits, kept, raised, squared):
    """Both sides of erratum 2; the rounding of squares is that of their sum 1."""
    rest, tau = rest_and_tau(logits, kept, raised)
    sides = (rest**2, 2 * tau - tau**2) if squared else (rest, tau)
    return Sides(*sides, magnitude=jnp.ones_like(tau))


def one_leading():
    """Two weights of norms .9 and sqrt(.19), so that tau = .1 with s0 = 1."""
    return {
        "logits": np.log(np.array([0.9, np.sqrt(0.19)])),
        "kept": np.asarray(1),
        "raised": np.asarray(0.0),
    }


@erratum(
    "Proof of Theorem 1, f_sub",
    witness=one_leading,
    reason="squares of norms add up, not the norms",
    corrected=Control(r"$\sqrt{2 \tau - \tau^2}$", squared=True),
    count=1,
)
def erratum_2(logits, kept, raised, *, squared=False):
    r"""$$\|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad \|f_{\mathrm{sub}}\|_2 \le \tau,
    \quad \|f\|_2 = \|f_{\mathrm{lead}}\|_2 + \|f_{\mathrm{sub}}\|_2 = 1$$

    $\tau = .1$, $s_0 = 1$: the rest has norm .436, not .1.
    """
    return rest_against_tau(logits, kept, raised, squared)


@inequality(
    "Proof of Theorem 1, f_sub, corrected",
    sample=logits,
    status=Status.CORRECTED,
    controls=[Control(r"$\tau$, not squared", squared=False)],
)
def erratum_2_corrected(logits, kept, raised, *, squared=True):
    r"""$$\|f\|_2 = 1,\ \|f_{s_0}\|_2 \ge 1 - \tau \quad \Rightarrow \quad
    \|f_{\mathrm{sub}}\|_2^2 \le 2 \tau - \tau^2$$

    Equality whenever $\tau$ is the smallest that (A2) allows, for all weights.
    """
    return rest_against_tau(logits, kept, raised, squared)


def four_equal():
    """Four equal logits."""
    return {"logits": np.zeros(4)}


@erratum(
    "Section 3.1, below (3)",
    of=Kind.IDENTITY,
    witness=four_equal,
    reason="a softmax sums to one, its Euclidean norm is below",
    corrected=Control("the sum of the weights is one", order=1),
    count=1,
)
def erratum_3(logits, *, order=2):
    r"""$$f(x) = \mathrm{softmax}(z) \quad \Rightarrow \quad \|f(x)\|_2 = 1$$

    '$\|f(x)\|_2 = 1$, as the sum one attention weights': four equal weights have norm $1/2$.
    Euclidean normalisation multiplies a softmax by up to $\sqrt{p}$, most where it is flat.
    """
    return jnp.linalg.norm(jax.nn.softmax(logits), order), 1.0


@inequality(
    "Section 3.1, below (3), corrected",
    sample=logits,
    status=Status.CORRECTED,
    controls=[Control(r"at most $1/\sqrt{p}$", uniform=True)],
)
def erratum_3_corrected(logits, *, uniform=False):
    r"""$$\frac{1}{\sqrt{p}} \le \|\mathrm{softmax}(z)\|_2 \le 1$$

    The left end is uniform attention, the right a one-hot one. With a softmax's own normalisation
    a bound through norms thus prefers uniform attention, by $p^2$ at the fourth power: the opposite
    of the paper's conclusion.
    """
    norm, low = jnp.linalg.norm(jax.nn.softmax(logits)), 1 / np.sqrt(_P)
    if uniform:
        return norm, low
    return jnp.stack([jnp.full_like(norm, low), norm]), jnp.stack([norm, jnp.ones_like(norm)])
