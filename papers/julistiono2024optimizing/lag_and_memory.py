r"""Beyond the paper: why D_psi falls like x^-2 or x^-2(p-1), x = ||W(k)||, with the constants.

Samples of two tokens, all with a positive multiplier lambda_i of W_mm, scaled to ||W_mm|| = 1. The
mirror variable is grad psi(W(0)) + sum_i a_i(k) C_i, C_i = (X_i,alpha - X_i,t) z_i'. Two errors of
its direction are orthogonal in the metric <U, V> = sum |W_mm|^{2-p} U V / (p - 1): what samples lag
behind one another, in the span of the C_i and of order 1/x, and the memory of W(0) across it, of
order x^-(p-1). Proof: papers/julistiono2024optimizing/proofs/rates.md.
"""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import in_turn, shared
from attlas.claims.statement import identity, limit
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.optim.mirror_descent import (
    inverse_potential_gradient,
    mirror_step,
    potential_gradient,
)
from julistiono2024optimizing.cone_instances import (
    attention_svm,
    mixed_loss,
    mixtures,
    plain_norm,
    slopes,
)
from julistiono2024optimizing.direction_metric import (
    across,
    gram_of,
    half_square,
    lag_of,
)
from julistiono2024optimizing.flow_instances import SOLVED, late_paths, solved
from julistiono2024optimizing.instances import ROUNDINGS, condition
from julistiono2024optimizing.late_errors import (
    APART,
    BACK,
    Late,
    late_records,
    leads_early,
    roundings_of,
    sides,
    suprema,
)
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient

_EXPONENTS = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
_COUNT, _FLOWS = 40, 38
"""Problems of each claim, and flows of each size."""
SIZES = ((2, 4), (3, 2), (5, 3))
"""Samples and dimensions of the flows, padded to the largest of each: one program runs them."""
_PASSED = 1e6
"""Margin of a padded sample: its slope is far below those of all others."""


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _solved(raw):
    """Data with ||W_mm|| = 1, the multipliers, and whether limits are near enough to be seen."""
    names = ("X", "z", "v", "p", "weight", "beyond", "margin")
    svm = attention_svm(**{name: raw[name] for name in names})
    norm, p = plain_norm(svm["W_mm"], raw["p"]), raw["p"]
    W_mm, z = svm["W_mm"] / norm, raw["z"] * norm
    C = jnp.einsum("nd,ne->nde", svm["X"][:, 0] - svm["X"][:, 1], z)
    gram = gram_of(W_mm, C, p)
    # Multipliers of unit sum: sum lambda_i = ||W_mm||^p.
    share = svm["weight"] / jnp.sum(svm["weight"])
    rate = jnp.sqrt(share[:, None] * share[None]) * gram * (p - 1)
    # Rates of the flow's relaxation per unit of the norm: slower than its steps, faster than it.
    slowest, fastest = jnp.linalg.eigvalsh(rate)[jnp.array([0, -1])]
    # At p < 3/2 a sample of small share waits for norms beyond every run once it is ahead.
    entries = jnp.min(jnp.abs(W_mm)) > jnp.where(p > 2, 0.03, jnp.where(p < 1.5, 3e-4, 0.003))
    good = (
        (jnp.min(share) > jnp.where(p < 1.5, 0.1, 0.02))
        & entries
        & (slowest > 0.1)
        & (fastest < 15)
    )
    return {**svm, "W_mm": W_mm, "z": z, "C": C, "gram": gram, "share": share, "good": good}


def _problems(rng, n, d, wanted=_COUNT):
    """Random problems of n samples of two tokens in d dimensions, and a mixture of four losses."""
    count = 40 * wanted
    raw = {
        "X": rng.normal(size=(count, n, 2, d)),
        "z": rng.normal(size=(count, n, d)),
        "v": rng.normal(size=(count, d)),
        "p": rng.choice(_EXPONENTS, count),
        "weight": rng.uniform(0.5, 2.0, (count, n)),
        "beyond": np.zeros((count, n, 1), bool),
        "margin": np.zeros((count, n, 1)),
        "mixture": mixtures(rng, count),
    }
    batch = {**raw, **{name: np.asarray(a) for name, a in _solved(raw).items()}}
    good = np.flatnonzero(batch.pop("good"))
    # Few are good at the least exponent: some of these first.
    least = batch["p"][good] < 1.5
    good = np.concatenate([good[least][:12], good[~least]])[:wanted]
    return {name: value[good] for name, value in batch.items()}


def _padded(batches):
    """Problems of several sizes in turn; H, as it is inverted, has ones where no sample is."""
    batch = in_turn(batches)
    none = np.einsum("bii->bi", batch["gram"]) == 0
    return {**batch, "gram": batch["gram"] + none[..., None] * np.eye(none.shape[1])}


def descents(rng, count):
    """Problems of one to five samples in two to four dimensions, a start, a step of 0.01 to 1."""
    sizes = ((1, 3), (2, 4), (3, 2), (4, 4), (5, 3))
    batch = _padded([_problems(rng, n, d, _COUNT // len(sizes)) for n, d in sizes])
    batch["samples"] = np.sum(np.any(batch["z"] != 0, axis=2), axis=1).astype(float)
    # Not in the coordinates that a smaller problem lacks.
    W = rng.normal(size=batch["W_mm"].shape) * (batch["W_mm"] != 0)
    eta = 10 ** rng.uniform(-2, 0, len(W))
    return {name: a[:count] for name, a in {**batch, "W": W, "eta": eta}.items()}


@identity(
    "beyond the paper: the mirror variable of samples of two tokens",
    status=Status.NEW,
    sample=descents,
    count=_COUNT,
    controls=[Control("attention $s_{i1}$ in place of $s_{i\\alpha} s_{i1}$", both=0.0)],
    roundings=8 * ROUNDINGS,
)
def mirror_span(X, y, z, v, W, p, eta, mixture, C, samples, *, both=1.0):
    r"""$$\nabla\psi(W(k)) - \nabla\psi(W(0)) = \sum_i a_i(k) C_i,\quad
    a_i(k) = \frac\eta n\sum_{j<k}
    -\ell'_i(j)\,(\gamma_{i\alpha}-\gamma_{i1})\,s_{i\alpha}(j)\,s_{i1}(j)$$

    Eight steps of plain descent, $n \le 5$ and $2 \le d \le 4$: with
    $\gamma_{i\alpha} > \gamma_{i1}$ every $a_i$ increases.
    """
    data, loss, start = TokenSelection(X, y, z, v), mixed_loss(mixture), potential_gradient(W, p)
    a, gamma, size = jnp.zeros(len(X)), y[:, None] * (X @ v), condition(X, z, W)
    for _ in range(8):
        s = jax.nn.softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
        slope = -loss.derivative(jnp.sum(s * gamma, axis=1))
        a = a + eta / samples * slope * (gamma[:, 0] - gamma[:, 1]) * s[:, 0] ** both * s[:, 1]
        # The library's mean is over the padded samples too, whose gradient is zero.
        W = mirror_step(W, selection_gradient(W, data, loss) * len(X) / samples, eta, p)
        size = size + condition(X, z, W)
    moved, terms = jnp.einsum("i,ide->de", a, C), jnp.einsum("i,ide->de", a, jnp.abs(C))
    magnitude = size * (jnp.sum(terms) + jnp.max(jnp.abs(start)))
    return Sides(potential_gradient(W, p) - start, moved, magnitude=magnitude)


@jax.jit
@jax.vmap
def _roundings_of_one(W_mm, W, C, gram, p):
    left = across(potential_gradient(W, p), W_mm, C, gram, p)
    return 2 * roundings_of(left, W_mm, C, gram, p, older=False)


def one_sample(rng, count):
    """Problems of one sample in two or four dimensions, a start and 85 growing multipliers a.

    The ratio is off by about 1 / a, and 1 / a^2 at p = 2. At the last a, 64 or 8 times the first,
    that is about 4096 times its roundings, which grow like a.
    """
    batch = _padded([_problems(rng, 1, d, _COUNT // 2) for d in (2, 4)])
    W = rng.normal(size=batch["W_mm"].shape) * batch["W_mm"]
    arrays = batch["W_mm"], W, batch["C"], batch["gram"], batch["p"]
    part = (4096 * np.finfo(float).eps * np.asarray(_roundings_of_one(*arrays)))[:, None]
    even = (batch["p"] == 2)[:, None]
    last = part ** np.where(even, -1 / 3, -1 / 2)
    a = last * np.where(even, 2.0, 4.0) ** (np.arange(-BACK, 1) / APART)
    batch |= {"W": W, "a": a, "from_a": a[:, ::APART]}
    return {name: value[:count] for name, value in batch.items()}


@limit(
    "beyond the paper: memory",
    status=Status.NEW,
    scales="from_a",
    sample=one_sample,
    count=_COUNT,
    controls=[Control("the whole of $U_0$", projected=0.0)],
    roundings=1,
)
def memory(W_mm, W, C, gram, p, a, *, projected=1.0):
    r"""$$n=1:\quad x^{2(p-1)} D_\psi(\bar W_{mm}, \bar W) \to \tfrac12 \|U_0^\perp\|^2,\quad
    \nabla\psi(W) = U_0 + aC,\ a\to\infty,\ U_0=\nabla\psi(W(0))$$

    $U_0^\perp$ is the part of $U_0$ orthogonal to $C$ in the metric. One sample moves along this
    line whatever the steps are (mirror-span). Shown is the largest relative distance from each of
    four $a$ on, plus $1/(64a)$, at $p=2$ $1/(64a^2)$, so that one that is far smaller is not
    decided by its roundings.
    """
    U = potential_gradient(W, p)
    left = across(U, W_mm, C, gram, p, projected)

    def ratio(share):
        there = inverse_potential_gradient(U + share * C[0], p)
        return plain_norm(there, p) ** (2 * (p - 1)) * direction_divergence(there, W_mm, p)

    distance = jnp.abs(jax.vmap(ratio)(a) / half_square(left, W_mm, p) - 1)
    at = suprema(distance)
    rounding = 2 * a[at] * roundings_of(left, W_mm, C, gram, p, older=False)
    order = jnp.where(p == 2, 2.0, 1.0)
    shown = distance[at] + a[::APART] ** -order / 64
    return Sides(shown, jnp.zeros(len(at)), magnitude=rounding)


def _ahead(rng, batch):
    """W_mm with noise of its size, the first of eight draws with all better tokens ahead.

    From elsewhere a flow may go to other tokens and never to W_mm.
    """
    noise = 0.5 * rng.normal(size=(8, *batch["W_mm"].shape))
    tried = batch["W_mm"] + noise
    ahead = np.all(np.einsum("bide,kbde->kbi", batch["C"], tried) > 0, axis=2)
    return tried[np.argmax(ahead, axis=0), np.arange(len(batch["p"]))]


_OF_LAW = "W_mm", "W", "C", "gram", "p", "theta", "share"


def law_of(x, W_mm, W, C, gram, p, theta, share, *, projected=1.0):
    """The laws of lag and of memory for epsilon at the norms x, two arrays [point, d, d]."""
    U = across(potential_gradient(W, p), W_mm, C, gram, p, projected)
    x = x[:, None, None]
    return lag_of(theta, share, gram, C) / x, U / x ** (p - 1)


_laws = jax.jit(jax.vmap(lambda *arrays: sum(law_of(*arrays))))


@jax.jit
@jax.vmap
def _readable(W_mm, start, C, gram, p, theta, share):
    """Whether four norms can decide: the leading term leads early, the lag is clear of rounding."""
    lag, memory = law_of(jnp.ones(1), W_mm, start, C, gram, p, theta, share)
    squares = half_square(lag[0], W_mm, p), half_square(memory[0], W_mm, p)
    leads = jnp.all(start == 0) | leads_early(*squares, p)
    return leads & (roundings_of(lag[0], W_mm, C, gram, p) < 500)


def _starts(rng, n, d):
    """Problems of one size with their starts, half of them at zero."""
    batch = _problems(rng, n, d, 2 * _FLOWS)
    moved = np.arange(len(batch["p"])) % 2
    return {**batch, "W": _ahead(rng, batch) * moved[:, None, None], "moved": moved}


def _readable_starts(rng):
    """Problems of all sizes, padded to one, with theta; those where four norms can decide."""
    sizes = [_starts(rng, *size) for size in SIZES]
    batch = _padded([{**one, "size": np.full(len(one["p"]), k)} for k, one in enumerate(sizes)])
    gamma = batch["y"][..., None] * np.einsum("bntd,bd->bnt", batch["X"], batch["v"])
    slope = np.einsum("bk,kbn->bn", batch["mixture"], np.asarray(slopes(gamma[..., 0])))
    samples = np.array([n for n, _ in SIZES])[batch["size"], None]
    share = batch["share"] + (batch["share"] == 0)  # of samples that are not there
    ratio = slope * (gamma[..., 0] - gamma[..., 1]) / samples / share
    batch["theta"] = np.log(np.where(batch["share"] == 0, 1.0, ratio))
    good = np.asarray(_readable(*(batch[name] for name in _OF_LAW)))
    chosen = [
        np.flatnonzero(good & (batch["size"] == k) & (batch["moved"] == kind))[: _FLOWS // 2]
        for k, kind in product(range(len(SIZES)), (0, 1))
    ]
    by_size = zip(chosen[::2], chosen[1::2], strict=True)
    return in_turn([
        {name: value[np.concatenate(rows)] for name, value in batch.items()} for rows in by_size
    ])  # fmt: skip


def _selections(batch):
    """The data of padded problems; the tokens of samples that are not there score `_PASSED`."""
    X, z, v = (batch[name] for name in ("X", "z", "v"))
    absent = ~np.any(z != 0, axis=2)
    passed = _PASSED * v / np.sum(v**2, axis=1, keepdims=True)
    X = np.where(absent[..., None, None], passed[:, None, None], X)
    return TokenSelection(*map(jnp.asarray, (X, np.where(absent, 1.0, batch["y"]), z, v)))


@shared
def _flows(rng):
    batch = _readable_starts(rng)
    path = late_paths(_selections(batch), batch["W"], batch["p"], batch["mixture"])
    W_mm, C, gram, p = (batch[name] for name in ("W_mm", "C", "gram", "p"))
    laws = _laws(path.norm, *(batch[name] for name in _OF_LAW))
    late = late_records(path, laws, W_mm, C, gram, p, p == 2)
    # A flow that keeps a sample at its worse token does not go to W_mm.
    gaps = np.einsum("bnde,bde->bn", batch["C"], late.W[:, -1]) / late.norm[:, -1:]
    ahead = np.all((gaps > 0.5) | ~np.any(batch["z"] != 0, axis=2), axis=1)
    flows = {**batch, "solved": solved(path), "x": late.norm[:, ::APART]}
    flows |= {"late": late.W, "norm": late.norm, "unsolved": late.unsolved}
    rows = [ahead & (batch["size"] == k) for k in range(len(SIZES))]
    return in_turn([{name: value[kind] for name, value in flows.items()} for kind in rows])


def flows_from(rng, count, zero=True):
    """Flows from W(0) = 0, or from W_mm with noise as large; at four norms, p from 3/2 where both.

    At p = 5/4 the memory, of relative order x^-(p-1), is not near its limit at norms of 10^10. Of
    lag and memory the one that leads in the end leads from a norm of 300 on.
    """
    flows = _flows(rng)
    rows = (flows["moved"] != zero) & (zero | (flows["p"] >= 1.5))
    return {name: value[rows][:count] for name, value in flows.items()}


@limit(
    "beyond the paper: lag",
    status=Status.NEW,
    scales="x",
    sample=flows_from,
    not_attacked="its sampler follows all flows at once",
    count=54,
    assumptions=[SOLVED],
    controls=[Control(r"the multipliers $\lambda_i$ left out of $\theta_i$", whole=0.0)],
    roundings=1,
)
def lag(W_mm, W, C, gram, p, late, norm, unsolved, theta, share, *, whole=1.0):
    r"""$$W(0)=0,\ D_\psi\to0:\quad x\epsilon \to \sum_ib_iC_i,\quad
    x^2 D_\psi(\bar W_{mm}, \bar W(k)) \to \tfrac12 (\theta-\bar\theta)^\top H^{-1}
    (\theta-\bar\theta),\quad Hb=\theta-\bar\theta,\quad
    \theta_i=\log\frac{-\ell'(\gamma_{i\alpha})(\gamma_{i\alpha}-\gamma_{i1})}{n\lambda_i},\
    \bar\theta=\sum_i\lambda_i\theta_i,\ H_{ij}=\langle C_i,C_j\rangle$$

    On the flow of two to five samples in two to four dimensions, $p$ from 1.25 to 4, mixtures of
    four losses: the gaps of the samples differ by $\theta_i - \theta_j$ in the end. A sample that
    saturates at its worse token (worse-token-is-kept) keeps $D_\psi$ from 0. Shown is the larger
    relative distance, of $\epsilon$ and of $\sqrt{D_\psi}$, from each of four norms on.
    """
    law, _ = law_of(norm, W_mm, W, C, gram, p, theta + (1 - whole) * jnp.log(share), share)
    return sides(law, Late(late, norm, unsolved), W_mm, C, gram, p)


@limit(
    "beyond the paper: lag and memory",
    status=Status.NEW,
    scales="x",
    sample=partial(flows_from, zero=False),
    not_attacked="its sampler follows all flows at once",
    count=46,
    assumptions=[SOLVED],
    controls=[
        Control("without the leading term, lag where $p > 2$ and memory where $p < 2$", lead=0.0),
        Control(r"$\theta_i$ without $\lambda_i$ and the whole of $U_0$", right=0.0),
    ],
    roundings=1,
)
def lag_and_memory(W_mm, W, C, gram, p, late, norm, unsolved, theta, share, *, lead=1.0, right=1.0):
    r"""$$D_\psi\to0:\quad \epsilon \sim \frac1x\sum_ib_iC_i + \frac{U_0^\perp}{x^{p-1}},\quad
    D_\psi(\bar W_{mm}, \bar W(k)) \sim
    \frac{(\theta-\bar\theta)^\top H^{-1}(\theta-\bar\theta)}{2x^2}
    + \frac{\|U_0^\perp\|^2}{2x^{2(p-1)}}$$

    $p$ from 1.5: below, the memory is not near its limit at these norms. From $W_{mm}$ with
    noise of its size, the better tokens ahead: the exponent is $-2\min\{1, p-1\}$, unless one
    constant vanishes. Shown is the larger relative distance, of $\epsilon$ and of
    $\sqrt{D_\psi}$, from each of four norms on.
    """
    theta = theta + (1 - right) * jnp.log(share)
    late_lag, memory = law_of(norm, W_mm, W, C, gram, p, theta, share, projected=right)
    law = jnp.where(p < 2, late_lag + lead * memory, lead * late_lag + memory)
    return sides(law, Late(late, norm, unsolved), W_mm, C, gram, p)
