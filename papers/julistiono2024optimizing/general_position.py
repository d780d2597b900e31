r"""Beyond the paper: the direction's rate for samples of two tokens in general position.

Almost all data have strict complementarity, independent support samples and a W_mm without zero
entry (papers/julistiono2024optimizing/proofs/rates.md, where all that stands here is proved).
Samples beyond the margin add what they have moved to the memory of W(0). So the exponent of the
conjecture,
min(2, 2(p-1)), is that of two or more support samples that do not span the space of W (of those
that do it is 2); one alone has no lag, and 2(p-1) for all p.
Where complementarity fails a logarithm appears, and where a sample saturates at its worse token
there is no convergence to W_mm at all.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.sampling import shared
from attlas.claims.statement import computed, limit
from attlas.data.token_selection import TokenSelection
from attlas.losses.logistic import logistic_derivative
from attlas.measures.attention.direction import direction_divergence
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from julistiono2024optimizing.cone_instances import attention_svm, plain_norm
from julistiono2024optimizing.direction_metric import (
    across,
    gram_of,
    half_square,
    lag_of,
    metric,
)
from julistiono2024optimizing.flow_instances import (
    EVERY,
    GROWTH,
    SOLVED,
    STEPS,
    late_paths,
    solved,
)
from julistiono2024optimizing.late_errors import (
    APART,
    FIRST,
    LEADS,
    Late,
    late_records,
    leads_early,
    roundings_of,
    sides,
)

_EXPONENTS, _WANTED = (1.75, 2.0, 2.5, 3.0), 64
_PACE = (1 - 1 / GROWTH) / np.log(GROWTH)
"""What implicit steps make of kappa where a coefficient grows like the logarithm of the norm."""


@partial(jax.jit, static_argnames="support")
@partial(jax.vmap, in_axes=(0, None))
def _solved(raw, support):
    """Data with ||W_mm|| = 1, of which the first samples alone are support samples."""
    names = ("X", "z", "v", "p", "weight", "beyond", "margin")
    svm = attention_svm(**{name: raw[name] for name in names})
    norm, p = plain_norm(svm["W_mm"], raw["p"]), raw["p"]
    W_mm, z = svm["W_mm"] / norm, raw["z"] * norm
    C = jnp.einsum("nd,ne->nde", svm["X"][:, 0] - svm["X"][:, 1], z)
    share = svm["weight"][:support] / jnp.sum(svm["weight"])
    gram = gram_of(W_mm, C[:support], p)
    rate = jnp.sqrt(share[:, None] * share[None]) * gram * (p - 1)
    slowest, fastest = jnp.linalg.eigvalsh(rate)[jnp.array([0, -1])]
    entries = jnp.min(jnp.abs(W_mm)) > jnp.where(p > 2, 0.15, 0.03)
    steep = jnp.max(jnp.sum(jnp.abs(C), axis=(1, 2))) < 30
    good = (jnp.min(share) > 0.1) & entries & (slowest > 0.3) & (fastest < 15) & steep
    return {**svm, "W_mm": W_mm, "z": z, "C": C, "share": share, "good": good}


_potentials = jax.vmap(potential_gradient)


def _log_kappa(batch):
    gamma = batch["y"][..., None] * np.einsum("bntd,bd->bnt", batch["X"], batch["v"])
    slope = np.asarray(-logistic_derivative(jnp.asarray(gamma[..., 0])))
    return np.log(slope * (gamma[..., 0] - gamma[..., 1]) / gamma.shape[1])


def _problems(rng, support, touching):
    """Three samples: support samples first; the others beyond the margin, or on it (touching)."""
    count, n = 200 * _WANTED, 3
    idle = np.arange(n) >= support
    raw = {
        "X": rng.normal(size=(count, n, 2, 3)),
        "z": rng.normal(size=(count, n, 3)),
        "v": rng.normal(size=(count, 3)),
        "p": rng.choice([2.0] if touching else _EXPONENTS, count),
        "weight": np.where(idle, 0, rng.uniform(0.5, 2.0, (count, n))),
        "beyond": np.broadcast_to(idle[:, None] & (not touching), (count, n, 1)),
        "margin": rng.uniform(0.5, 1.5, (count, n, 1)),
    }
    batch = {**raw, **{name: np.asarray(a) for name, a in _solved(raw, support).items()}}
    good = np.flatnonzero(batch.pop("good"))[:_WANTED]
    return {name: value[good] for name, value in batch.items()}


@jax.jit
@jax.vmap
def _parts(W_mm, C, p, U, log_kappa, share):
    """H of the support samples, what they lag at norm one, and the part of U across them."""
    gram = gram_of(W_mm, C, p)
    lag = lag_of(log_kappa - jnp.log(share), share, gram, C)
    return gram, lag, across(U, W_mm, C, gram, p)


@jax.jit
@jax.vmap
def _readable(lag, memory, W_mm, C, gram, p):
    """Whether the lag is clear of rounding and the leading term leads from `LEADS` on."""
    squares = half_square(lag, W_mm, p), half_square(memory, W_mm, p)
    return leads_early(*squares, p) & (roundings_of(lag, W_mm, C, gram, p) < 500)


@jax.jit
@jax.vmap
def _first_order_leads(memory, W_mm, p):
    """Whether of a single term's corrections that of first order in epsilon leads from `LEADS` on.

    Along epsilon = t M, with D_psi = 1 - <grad psi(W), W_mm> / (||W||^{p-1} ||W_mm||) the distance
    of sqrt(D_psi) is about |c t + e t^2|, and that of epsilon D_psi itself. Even functions, as at
    p = 2, have c = 0. Where c is small one power overtakes the other at norms of 10^5 and more.
    """
    half = half_square(memory, W_mm, p)
    short = 0.01 / jnp.sqrt(2 * half)

    def of(t):
        W = inverse_potential_gradient(potential_gradient(W_mm, p) + t * memory, p)
        return jnp.sqrt(direction_divergence(W, W_mm, p) / (t**2 * half)) - 1

    ahead, behind = of(short), of(-short)
    first, second = jnp.abs(ahead - behind) / 2, (ahead + behind) / 2 + half * short**2
    second = jnp.maximum(half * short**2, jnp.abs(second))
    return (p == 2) | (second / short**2 < first / short * LEADS ** (p - 1))


def law_of(norm, lag, memory, p):
    """The law of epsilon at these norms, from its parts at norm one."""
    x = norm[:, None, None]
    return lag / x + memory / x ** (p - 1)


_laws = jax.jit(jax.vmap(law_of))


@shared
def _flows(rng, support):
    """Flows from W_mm with noise of its size, along their last records."""
    batch = _problems(rng, support, False)
    W_mm, p = batch["W_mm"], batch["p"]
    start = W_mm + 0.5 * rng.normal(size=W_mm.shape)
    data = TokenSelection(*(on_device(batch[name]) for name in ("X", "y", "z", "v")))
    path = late_paths(data, start, p)
    C, log_kappa = batch["C"][:, :support], _log_kappa(batch)[:, :support]
    # Samples beyond the margin stand still by the end of the explicit steps.
    ends = jnp.asarray(start), path.W[:, STEPS // EVERY - 1]
    begun, stopped = (_potentials(W, jnp.asarray(p)) for W in ends)
    gram, lag, memory = _parts(W_mm, C, p, stopped, log_kappa, batch["share"])
    from_start = _parts(W_mm, C, p, begun, log_kappa, batch["share"])[2]
    laws = _laws(path.norm, lag, memory, p)
    # One alone has memory alone, so that the distance falls like x^{-(p-1)}, also for p > 2.
    steep, first = (p >= 2, 40.0) if support == 1 else (p == 2, FIRST)
    late = late_records(path, laws, W_mm, C, gram, p, steep, first)
    # A flow that has left a sample at its worse token goes elsewhere: not what is stated.
    gaps = np.einsum("bnde,bde->bn", batch["C"], late.W[:, -1]) / late.norm[:, -1:]
    inside = np.min(gaps, axis=1) > 0.5
    if support > 1:
        inside &= np.asarray(_readable(lag, memory, W_mm, C, gram, p))
    else:
        inside &= np.asarray(_first_order_leads(memory, W_mm, p))
    flows = {"W_mm": W_mm, "p": p, "C": C, "gram": gram, "lag": lag, "memory": memory}
    flows |= {"from_start": from_start, "solved": solved(path), "x": late.norm[:, ::APART]}
    flows |= {"late": late.W, "norm": late.norm, "unsolved": late.unsolved}
    return {name: np.asarray(value)[inside] for name, value in flows.items()}


def flows(rng, count, support=1, where=lambda p: p > 1):
    """Flows of three samples with this many support samples, at late norms; of some p alone.

    Those of which the leading term leads early and, with two of them, lag is clear of rounding.
    """
    batch = _flows(rng, support)
    rows = np.flatnonzero(where(batch["p"]))[:count]
    return {name: value[rows] for name, value in batch.items()}


_STEEP, _FLAT = (lambda p: p > 2), (lambda p: p <= 2)


@limit(
    "beyond the paper: one support sample",
    status=Status.NEW,
    scales="x",
    sample=flows,
    not_attacked="its sampler follows all flows at once",
    count=_WANTED,
    assumptions=[SOLVED],
    controls=[
        Control(
            r"the exponent $\min\{2, 2(p-1)\}$ of the conjecture, for $p > 2$",
            always=True,
            sample=partial(flows, where=_STEEP),
        ),
        Control(r"$U_0$ in place of $U_\infty$", end=0.0),
    ],
    roundings=1,
)
def one_support_sample(
    W_mm, C, gram, p, memory, from_start, late, norm, unsolved, *, always=False, end=1.0
):
    r"""$$\epsilon\sim\frac{U_\infty^\perp}{x^{p-1}},\quad
    x^{2(p-1)}D_\psi(\bar W_{mm},\bar W)\to\tfrac12\|U_\infty^\perp\|^2,\quad
    \lambda_1>0=\lambda_2=\lambda_3,\quad
    U_\infty=U_0+\sum_{i\ge2}a_i(\infty)C_i$$

    One support sample has nobody to lag behind: for $p>2$ the conjectured exponent 2 is false on
    an open set of data (4 at $p=3$). The two samples beyond the margin move $u$ by a finite amount,
    which is remembered like $W(0)$; $U_\infty$ is read off at norms of about 160, on flows that
    leave no sample at its worse token. Shown is the larger relative distance, of $\epsilon$ and of
    $\sqrt{D_\psi}$, from each of four norms on.
    """
    left = end * memory + (1 - end) * from_start
    power = jnp.minimum(1, p - 1) if always else p - 1
    law = left / norm[:, None, None] ** power
    return sides(law, Late(late, norm, unsolved), W_mm, C, gram, p)


@limit(
    "beyond the paper: two support samples and one beyond",
    status=Status.NEW,
    scales="x",
    sample=partial(flows, support=2),
    not_attacked="its sampler follows all flows at once",
    count=_WANTED,
    assumptions=[SOLVED],
    controls=[
        Control("memory alone", part=0.0, sample=partial(flows, support=2, where=_STEEP)),
        Control("lag alone", end=0.0, sample=partial(flows, support=2, where=_FLAT)),
    ],
    roundings=1,
)
def two_support_samples(W_mm, C, gram, p, lag, memory, late, norm, unsolved, *, part=1.0, end=1.0):
    r"""$$D_\psi\to0:\quad \epsilon\sim\frac1x\sum_ib_iC_i+\frac{U_\infty^\perp}{x^{p-1}},\quad
    D_\psi(\bar W_{mm},\bar W)\sim
    \frac{(\theta-\bar\theta)^\top H^{-1}(\theta-\bar\theta)}{2x^2}
    +\frac{\|U_\infty^\perp\|^2}{2x^{2(p-1)}}$$

    The sums of the lag run over the support samples. The lag is positive for almost all data with
    two or more of them, the memory where they do not span the space of $W$: there the exponent is
    $\min\{2,2(p-1)\}$, and 2 where they span it. Flows that leave a sample at its worse token are
    left out. Shown is the larger relative distance, as for one support sample.
    """
    law = law_of(norm, part * lag, end * memory, p)
    return sides(law, Late(late, norm, unsolved), W_mm, C, gram, p)


@jax.jit
@jax.vmap
def _touching(W_mm, C, p, log_kappa, share):
    """H, the lag of the support samples, C_0^perp / m at norm one, and m kappa."""
    gram = gram_of(W_mm, C[:2], p)
    remainder = across(C[2], W_mm, C[:2], gram, p)
    beta = jnp.linalg.solve(gram, jnp.einsum("ide,de->i", C[:2], metric(W_mm, p) * C[2]))
    m, theta = 2 * half_square(remainder, W_mm, p), log_kappa[:2] - jnp.log(share)
    strength = _PACE * m * jnp.exp(log_kappa[2] - beta @ theta)
    return gram_of(W_mm, C, p), lag_of(theta, share, gram, C[:2]), remainder / m, strength


@jax.jit
@jax.vmap
def _touching_laws(norm, lag, remainder, strength):
    x = norm[:, None, None]
    return (lag + jnp.log(strength * x) * remainder) / x


@shared
def _flows_on_the_margin(rng):
    """Flows from zero with two support samples and one on the margin, along their last records."""
    batch = _problems(rng, 2, True)
    W_mm, C, p = batch["W_mm"], batch["C"], batch["p"]
    data = TokenSelection(*(on_device(batch[name]) for name in ("X", "y", "z", "v")))
    path = late_paths(data, 0 * W_mm, p)
    gram, *parts = _touching(W_mm, C, p, _log_kappa(batch), batch["share"])
    late = late_records(path, _touching_laws(path.norm, *parts), W_mm, C, gram, p, p < 2)
    lag, remainder, strength = parts
    # A flow that has left a sample at its worse token goes elsewhere: not what is stated.
    gaps = np.einsum("bnde,bde->bn", C, late.W[:, -1]) / late.norm[:, -1:]
    # Scales where y is at least 1: nearer the start the sample is still below its margin.
    rows = (np.min(gaps, axis=1) > 0.5) & (np.asarray(strength) * late.norm[:, 0] > 8)
    flows = {"W_mm": W_mm, "p": p, "C": C, "gram": gram, "lag": lag, "remainder": remainder}
    flows |= {"strength": strength, "solved": solved(path), "x": late.norm[:, ::APART]}
    flows |= {"late": late.W, "norm": late.norm, "unsolved": late.unsolved}
    return {name: np.asarray(value)[rows] for name, value in flows.items()}


def touching_flows(rng, count):
    """Flows from zero with two support samples and one on the margin without a multiplier."""
    return {name: value[:count] for name, value in _flows_on_the_margin(rng).items()}


@limit(
    "beyond the paper: a token on the margin without a multiplier",
    status=Status.NEW,
    scales="x",
    sample=touching_flows,
    not_attacked="its sampler follows all flows at once",
    count=_WANTED,
    assumptions=[SOLVED],
    controls=[
        Control("lag alone, order $x^{-2}$", part=0.0),
        Control("twice the logarithm", part=2.0),
    ],
    roundings=1,
)
def token_without_multiplier(
    W_mm, C, gram, p, lag, remainder, strength, late, norm, unsolved, *, part=1.0
):
    r"""$$p=2,\ W(0)=0,\ D_\psi\to0:\quad
    \epsilon\sim\frac1x\Big(\sum_ib_iC_i+\log(m\kappa x)\frac{C_0^\perp}m\Big),\quad
    D_\psi(\bar W_{mm},\bar W)\sim\frac1{2x^2}
    \Big((\theta-\bar\theta)^\top H^{-1}(\theta-\bar\theta)+\frac{\log^2(m\kappa x)}m\Big)$$

    The order is $\log^2x/x^2$, and no power of $x$. $m$ is the squared length of $C_0^\perp$, what
    the metric leaves of $C_0$ across the span of the others,
    $\kappa=\kappa_0e^{-\sum\beta_i\theta_i}$, $C_0$ having the parts $\beta_i$ in the span; other
    $p$ are in the proof. Shown is the relative distance, as for one support sample, plus $8/x$,
    below which its sign may change. Implicit steps that multiply $x$ by $g=1.05$ put
    $\kappa\,(1-1/g)/\log g$ in the place of $\kappa$.
    """
    x = norm[:, None, None]
    law = (lag + part * jnp.log(strength * x) * remainder) / x
    seen = sides(law, Late(late, norm, unsolved), W_mm, C, gram, p)
    return seen._replace(left=seen.left + 8 / norm[::APART])


_DESCENT = 200


@computed(
    Kind.INEQUALITY,
    "beyond the paper: a sample that stays at its worse token",
    status=Status.NEW,
    count=48,
    evaluations=480,
    controls=[
        Control("an advantage eight times as large", times=8.0),
        Control("1.2 times the lower bound", factor=1.2),
    ],
    roundings=2**16,
)
def worse_token_is_kept(rng, count, *, times=1.0, factor=1.0):
    r"""$$p=2,\ W(0)=0,\ \langle C_1,C_2\rangle=-b<-\alpha=-\|C_1\|^2,\ b<\|C_1\|\|C_2\|,\
    k\le\min\{\frac{b-\alpha}{\|C_2\|^2},\frac\alpha b\}
    \ \Rightarrow\ -\langle C_2,W(j)\rangle\ge(b-k\|C_2\|^2)\,a_1(j)\to\infty$$

    Descent with any steps of infinite sum, $k$ the largest ratio of $\kappa_2$ to $\kappa_1$ along
    it. The data are separable, and yet the second sample saturates at its worse token for ever:
    "from any start" is false for two tokens, even from zero, and convergence needs a start like the
    paper's cone. Some 200 steps, sides divided by $a_1$.
    """
    ends = [((1.2, 3.0), (0.3, 1.5), (0.3, 1.0), (-1, 1)) for _ in range(count)]
    b, c, share, log_eta = np.array([[rng.uniform(*end) for end in of_one] for of_one in ends]).T
    D = np.stack([np.tile([1.0, 0.0], (count, 1)), np.stack([-b, c], axis=1)], axis=1)
    beta = b**2 + c**2
    k = share * np.minimum((b - 1) / beta, 1 / b)
    # Slopes of the logistic loss lie between those at margins 0 and 1.
    advantage = k / (0.5 * (1 + np.e))
    ahead = np.stack([np.ones(count), times * advantage], axis=1)
    gram, a, right = D @ D.swapaxes(1, 2), np.zeros((count, 2)), np.zeros((count, _DESCENT))
    for j in range(_DESCENT):
        s = 1 / (1 + np.exp(-np.einsum("eij,ej->ei", gram, a)))
        slope = 1 / (1 + np.exp(s * ahead))
        a = a + 10 ** log_eta[:, None] * slope * ahead * s * (1 - s) / 2
        right[:, j] = -np.einsum("ej,ej->e", gram[:, 1], a) / a[:, 0]
    left = np.repeat((factor * (b - k * beta))[:, None], _DESCENT, axis=1)
    return Sides(*map(jnp.asarray, (left, right)), magnitude=jnp.full(left.shape, 10.0))
