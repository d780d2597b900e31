r"""Theorem 3 with a condition that trained networks meet: a training risk not above the noise's.

(A6) asks for gradients as large as the error, which is the conclusion but for the sampling. Here
every network of bounded weights that fits its sample at least as well as the truth has a small
error, whatever its gradients. Proof: papers/liu2021analyzing/proofs/trained_networks.md.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, Status, assume
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality, probability
from liu2021analyzing.library.bounds.trained_network_error import (
    deep_attention_stretch,
    finite_class_error,
    trained_network_error,
)
from liu2021analyzing.library.models.deep_self_attention import make_deep_self_attention
from liu2021analyzing.theorem_3 import marked_queries

_DELTA, _TRIALS = 0.05, 400


def lower_tails(rng, count):
    """Indicators: n, their probability from 1/n on, and the exact chance of half the mean."""
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    n = np.floor(10 ** rng.uniform(0.5, 3, count))
    p = 10 ** rng.uniform(-1, 0, count) * np.minimum(1, 20 / n)
    return {"n": n, "p": p, "chance": binom.cdf(np.floor(n * p / 2), n, p)}


@inequality(
    "Theorem 3 for trained networks, the lower tail",
    status=Status.NEW,
    sample=lower_tails,
    roundings=2**14,
    controls=[Control("8 to 3", eighth=3.0)],
)
def lower_tail(n, p, chance, *, eighth=8.0):
    r"""$$0\le|v|\le M:\quad
    \mathbb P\Big[\frac1n\sum_iv_i^2\le\tfrac12Ev^2\Big]\le e^{-nEv^2/8M^2}$$

    Exact for $v^2\in\{0,M^2\}$, where the fourth moment is the largest.
    """
    return chance, jnp.exp(-n * p / eighth)


def extremal_steps(rng, count):
    """The largest a with a^2 <= a b + r b + 4 r C_3, and errors of the centre that follow."""
    b, noise = 10 ** rng.uniform(-3, 0, count), 10 ** rng.uniform(-2, 1, count)
    r = b**2 / (4 * (b + 4 * noise)) * rng.uniform(0, 1, count)
    a = b * np.exp(rng.uniform(-3, 0.5, count))
    return {"a": a, "b": b, "noise": noise, "r": r}


@inequality(
    "Theorem 3 for trained networks, the basic inequality",
    status=Status.NEW,
    sample=extremal_steps,
    search_over="a",
    project=lambda a: {"a": jnp.maximum(a, 1e-6)},
    assumptions=[
        assume(r"$a^2\le ab+r(b+4C_3)$", lambda a, b, noise, r: a**2 <= a * b + r * (b + 4 * noise))
    ],
    controls=[Control(r"without $r$", part=0.0)],
    count=128,
)
def basic_inequality(a, b, noise, r, *, part=1.0):
    r"""$$a^2\le ab+r(b+4C_3)\ \Rightarrow\ a\le\tfrac12\big(b+\sqrt{b^2+4r(b+4C_3)}\big)$$

    $a=\|u\|_n$ of a network that fits no worse than the truth, $a^2\le\frac2n\sum\varepsilon_iu_i$,
    moved to a centre at sup distance $r$.
    """
    return a, (b + jnp.sqrt(b**2 + 4 * part * r * (b + 4 * noise))) / 2


_CLASSES, _SAMPLES = 255, 512


def walsh_functions(rng, count):
    """Largest mean of noise times one of 255 orthogonal functions of values +-1."""
    indices = np.arange(_CLASSES + 1)
    chi = 1.0 - 2.0 * (np.bitwise_count(indices[1:, None] & indices) % 2)
    largest = np.zeros(count)
    for e in range(count):
        x = rng.integers(0, _CLASSES + 1, _SAMPLES)
        noise = np.bincount(x, rng.normal(size=_SAMPLES), _CLASSES + 1)
        largest[e] = np.max(chi @ noise) / _SAMPLES
    return {"largest": largest}


@probability(
    "Theorem 3 for trained networks, a finite class",
    status=Status.NEW,
    level=1 - _DELTA,
    sample=walsh_functions,
    independent="inputs and noise",
    count=_TRIALS,
    controls=[Control("4 in place of 16", share=0.25)],
)
def finite_class(largest, *, share=1.0):
    r"""$$\widehat L(\hat h)\le\frac1n\sum_i\varepsilon_i^2\ \Rightarrow\
    E\hat u^2\le\max\{16C_3^2,8M^2\}\frac{\log(2N/\delta)}n\quad
    \text{with probability } 1-\delta$$

    Least squares over the truth $0$ and 255 orthogonal functions $\pm t$ with $t^2$ just above the
    bound, $n=512$: any choice but the truth is a failure, which is a mean of noise above $t/2$. At
    a quarter of the bound least squares fails, so the constant is within 4 of the best.
    """
    level = math.log(2 * (_CLASSES + 1) / _DELTA)
    t = math.sqrt(1.01 * share * finite_class_error(_SAMPLES, level, 0.0, 1.0))
    return largest <= t / 2


_SHAPE, _N, _NOISE, _STEPS = (2, (2, 2), 1, 2, 2), 512, 0.3, 30
_CLIP = 1.0


def _norms(models):
    """Frobenius norms of query, key, value and the two layers, for each attention layer."""
    matrices = [(a.W_Q, a.W_K, a.W_V, a.W1, a.W2) for a in models.layers]
    last = models.readout
    matrices.append((last.W_Q, last.W_K, last.W_V, last.W1, last.w2))
    flat = [[np.asarray(m).reshape(len(m), -1) for m in part] for part in matrices]
    return np.stack([[np.linalg.norm(m, axis=1) for m in part] for part in flat]).transpose(2, 0, 1)


def _output_bounds(norms, words, width, d_q):
    """Bound of the output and the logits' bounds, from norms and the length of a word."""
    logits, length = [], words
    for q, k, v, first, second in norms:
        logits.append(float(q * k * length**2 / math.sqrt(d_q)))
        length = v * first * second * length
    return float(math.sqrt(width) * length), logits


def moved_networks(rng, count):
    """Networks in balls of radii 1/2 to 2, and others at a part of the radii from them.

    Every second one has parallel weights and positive words, where the move is the largest.
    """
    rho, radius = 10 ** rng.uniform(-4, -1, count), rng.uniform(0.5, 2, count)
    shapes = jax.eval_shape(lambda k: make_deep_self_attention(k, *_SHAPE), jax.random.key(0))
    leaves, layout = jax.tree.flatten(shapes)
    near, far = [], []
    parallel = np.arange(count) % 2 == 0
    # Scores, and no others, have the sizes of the queries.
    query = [float(jnp.max(leaf)) for leaf in jax.tree.leaves(marked_queries(shapes))]
    steep = six_decades(rng, count, 0, 0)
    for leaf, of_query in zip(leaves, query, strict=True):
        size = (count, *leaf.shape)
        ones = np.zeros(size)
        ones.reshape(count, -1)[:, 0] = 1
        turned = parallel.reshape(-1, *[1] * len(leaf.shape))
        base, move = (np.where(turned, ones, rng.normal(size=size)) for _ in range(2))
        axes = tuple(range(1, len(size)))
        base, move = (a / np.sqrt(np.sum(a**2, axes, keepdims=True)) for a in (base, move))
        r = (radius * (steep if of_query else 1.0)).reshape(turned.shape)
        step = rho.reshape(turned.shape)
        near.append(r * (1 - step) * base)
        far.append(r * ((1 - step) * base + step * move))
    x = rng.normal(size=(count, 2, 2))
    x[parallel] = np.array([[1.0, 1.0], [0.0, 0.0]])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    outputs = jax.jit(jax.vmap(lambda model, x: model(x)))
    before, after = (outputs(jax.tree.unflatten(layout, part), x) for part in (near, far))
    radii = radius[:, None] * np.column_stack([steep, np.ones((count, 4))])
    bounds = [_output_bounds(np.tile(r, (2, 1)), 1.0, 2, 1) for r in radii]
    stretch = [deep_attention_stretch(logits) for _, logits in bounds]
    fixed = [deep_attention_stretch([0.0] * len(logits)) for _, logits in bounds]
    batch = {"change": np.abs(np.asarray(after - before)), "rho": rho, "stretch": stretch}
    batch |= {"fixed": fixed, "output": [output for output, _ in bounds], "parallel": parallel}
    return {name: np.asarray(value, float) for name, value in batch.items()}


@inequality(
    "Theorem 3 for trained networks, how far outputs move",
    status=Status.NEW,
    sample=moved_networks,
    count=96,
    evaluations=768,
    roundings=2**12,
    controls=[Control("two thirds of the stretch without logits", whole=0.0)],
)
def moved_outputs(change, rho, stretch, fixed, output, parallel, *, whole=1.0):
    r"""$$|h_\theta(x)-h_{\theta'}(x)|\le\rho\,s_D\,B,\quad
    s_k=s_{k-1}(1+2\Lambda_k)+3+2\Lambda_k$$

    Two layers of attention, each of their five matrices moved by at most $\rho$ times the radius of
    its ball. Words that are equal leave attention uniform; parallel weights then move the output
    by $6\rho B$ (up to $\rho^2$, and $\sqrt p$ of the words), what the values and layers ask for.
    """
    share = jnp.where(parallel > 0, 1 / jnp.sqrt(2.0), 1.0)
    bound = rho * output * (stretch if whole else 2 / 3 * fixed * share)
    return change, bound


def _clipped(model, x):
    return jnp.clip(jax.vmap(model)(x), -_CLIP, _CLIP)


_quickly = partial(jax.jit, compiler_options=CHEAP_COMPILATION)
_teachers = _quickly(jax.vmap(lambda key: make_deep_self_attention(key, *_SHAPE)))
_outputs = _quickly(jax.vmap(_clipped))


@jax.jit
def _descended(*members):
    """`_descend` of each, one after another: a training stays in the core's own cache."""
    return jax.lax.map(lambda member: _descend(*member), members)


def _descend(teacher, words, labels):
    """The best network of a descent from the teacher on the training risk, its and the teacher's.

    The teacher's risk is that of the noise, here with the same roundings as the student's.
    """

    def risk(model):
        return jnp.mean((_clipped(model, words) - labels) ** 2)

    def step(state, _):
        model, best, least = state
        loss, slope = jax.value_and_grad(risk)(model)
        better = loss < least
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), model, best)
        model = jax.tree.map(lambda a, g: a - 0.1 * g, model, slope)
        return (model, best, jnp.minimum(loss, least)), loss

    (_, student, least), risks = jax.lax.scan(step, (teacher, teacher, jnp.inf), length=_STEPS)
    return student, least, risks[0]


def trained_networks(rng, count):
    """Two layers of attention on two words, clipped, trained from the teacher on 512 samples."""
    teachers = _teachers(jax.random.split(jax.random.key(int(rng.integers(2**31))), count))
    words = rng.normal(size=(2, count, _N, 2, 2))
    seen, fresh = words / np.linalg.norm(words, axis=3, keepdims=True)
    noise = _NOISE * rng.normal(size=(count, _N))
    labels = np.asarray(_outputs(teachers, seen)) + noise
    students, least, truth_risk = _descended(teachers, seen, labels)
    moved = np.asarray(_outputs(students, fresh)) - np.asarray(_outputs(teachers, fresh))
    norms = np.maximum(_norms(students), _norms(teachers))
    P = sum(leaf.size for leaf in jax.tree.leaves(teachers)) // count
    # Balls are fixed before the sample and hold all students.
    balls = np.full(norms.shape[1:], 4.0)
    output, logits = _output_bounds(balls, 1.0, 2, 1)
    stretch = deep_attention_stretch(logits) * output / _CLIP
    bound = trained_network_error(_N, P, _CLIP, _NOISE, stretch, _DELTA - math.exp(-_N / 2))
    ones = np.ones(count)
    inside = np.all(norms <= balls, axis=(1, 2)).astype(float)
    batch = {"error": np.mean(moved**2, axis=1), "least": np.asarray(least)}
    batch |= {"own": np.asarray(truth_risk), "inside": inside}
    return {**batch, "bound": bound * ones, "one": _NOISE**2 / _N * ones}


@probability(
    "Theorem 3 for trained networks, two layers of attention",
    status=Status.NEW,
    level=1 - _DELTA,
    sample=trained_networks,
    independent="teacher, data and noise",
    count=320,
    assumptions=[
        assume("weights lie in balls of radius 4", lambda inside: inside > 0),
        assume("the training risk is at most that of the noise", lambda least, own: least <= own),
    ],
    controls=[Control(r"$\sigma^2/n$, one parameter", single=True)],
)
def trained_network(error, bound, one, *, single=False):
    r"""$$\widehat L(\hat h)\le\frac1n\sum_i\varepsilon_i^2\ \Rightarrow\ E\hat u^2\le
    \Big(\max\{\sqrt2(a+r),4B\sqrt{2L/n}\}+r\Big)^2\quad\text{with probability }1-\delta$$

    Students with outputs clipped to $[-B,B]$ that start at the teacher and descend on their sample
    meet the condition in every draw. At this size the bound is vacuous, and thousands of times
    their error: the finite class shows what of it is the method's.
    """
    return error <= (one if single else bound)
