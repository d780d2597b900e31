r"""Theorem 6 (appendix B): recurrent attention; weights, features, count, and the trade-off.

Words are columns of x, |x| <= C_x entrywise, as (A1.1) has it; the reader of c_T has no biases.
"""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator, seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.measures.statistics.conditional_covariance import conditional_covariance
from attlas.models.attention.recurrent_attention import (
    DotScore,
    NetworkScore,
    RecurrentAttention,
    make_recurrent_attention,
)
from attlas.models.networks.rectifier import rectify
from attlas.models.networks.two_layer import TwoLayer

_PAPER = "liu2021analyzing"
_T, _P, _D, _STEPS, _POINTS = 2, 4, 2, 3, 16
_SCORE = {"V_s": (_T, _T), "V_x": (_T, _T), "v": (_T,)}
_UPDATE = {"W_s": (_T, _T), "W_c": (_T, _T), "b": (_T,)}
_READER = {"W1": (_T, _D), "w2": (_D,)}
# The parameters of score and update lie in balls of these radii, C_8 and C_9.
_C_8, _C_9, _TAU = 200.0, 10.0, 0.25


def _population(key: PRNGKeyArray, count: int) -> Instance:
    """Inputs, a teacher and a student, which is the teacher's neighbour in every other one."""
    return _drawn(seed_of(key), count)


@cache
def _drawn(seed: tuple[int, ...], count: int) -> Instance:
    draws = np.random.default_rng(seed)
    batch: dict[str, np.ndarray] = {"x": draws.uniform(-2, 2, (count, _POINTS, _T, _P))}
    near = (np.arange(count) % 2 == 0)[:, None, None]
    for name, shape in {**_SCORE, **_UPDATE, **_READER}.items():
        teacher = 2 * draws.normal(size=(count, *shape))
        other = 2 * draws.normal(size=(count, *shape))
        close = near if len(shape) == 2 else near[:, :, 0]
        batch[f"{name}_t"] = teacher
        batch[name] = np.where(close, teacher + 0.01 * other, other)
    # One word of every input is at a corner, and some score it far above the others.
    batch["x"][:, :, :, 0] = 2 * draws.choice([-1.0, 1.0], (count, _POINTS, _T))
    batch["v"] *= 10 ** draws.uniform(-1, 1.5, (count, 1))
    batch["v_t"] *= 10 ** draws.uniform(-1, 1.5, (count, 1))
    arrays = {name: jnp.asarray(value) for name, value in batch.items()}
    return {**arrays, **_attended(arrays)}


@jax.jit
def _attended(batch: Instance) -> Instance:
    """Last weights and contexts of student and teacher; two models run as one."""

    def last(instance: Instance) -> tuple[Array, Array]:
        model = _model(instance)
        weights = jax.vmap(lambda x: model.attention(x)[-1])(instance["x"])
        return weights, jnp.einsum("ntp,np->nt", instance["x"], weights)

    names = [*_SCORE, *_UPDATE, *_READER]
    both = {name: jnp.stack([batch[name], batch[f"{name}_t"]]) for name in names}
    weights, contexts = jax.vmap(jax.vmap(last), in_axes=({**dict.fromkeys(both, 0), "x": None},))(
        {**both, "x": batch["x"]}
    )
    return {"weights": weights[0], "c": contexts[0], "c_t": contexts[1]}


def _model(instance: Instance, end: str = "", steps: int = _STEPS) -> RecurrentAttention:
    W_s, W_c, b = (instance[f"{name}{end}"] for name in _UPDATE)
    V_s, V_x, v = (instance[f"{name}{end}"] for name in _SCORE)
    reader = TwoLayer(instance[f"W1{end}"], instance[f"w2{end}"])
    return RecurrentAttention(W_s, W_c, b, NetworkScore(V_s, V_x, v), reader, steps)


def _weights(instance: Instance, exponent: bool = True) -> Sides:
    """Minus the weights and the difference of their sum from one must not be positive."""
    scores = instance["scores"]
    shares = jax.nn.softmax(scores) if exponent else scores / jnp.sum(scores)
    return Sides(-shares, jnp.zeros_like(shares), scale=jnp.ones_like(shares))


def _scores() -> Witness:
    """Scores of both signs, as dot products have."""
    return {"scores": np.array([2.0, -1.0])}


def _no_draws(key: PRNGKeyArray, count: int) -> Instance:
    del key
    return {"scores": jnp.tile(jnp.asarray(_scores()["scores"]), (count, 1))}


def _lengths(instance: Instance, root: bool = True) -> Sides:
    """Contexts against the largest entry."""
    size = jnp.max(jnp.abs(instance["x"])) * (np.sqrt(_T) if root else 1.0)
    left = jnp.linalg.norm(instance["c"], axis=1)
    return Sides(left, jnp.broadcast_to(size, left.shape))


def _ones() -> Witness:
    """One input of one word (1, 1), read by one unit along it."""
    return {"x": np.ones((2, 1)), "W1": np.full((2, 1), np.sqrt(0.5))}


def _one_word(instance: Instance, root: bool) -> Sides:
    """The context of one word is that word."""
    norm = jnp.linalg.norm(instance["W1"]) * jnp.max(jnp.abs(instance["x"]))
    features = rectify(instance["x"][:, 0] @ instance["W1"])
    return Sides(jnp.linalg.norm(features), norm * (np.sqrt(2) if root else 1.0))


def _one_instance(key: PRNGKeyArray, count: int) -> Instance:
    del key
    return {name: jnp.asarray(np.repeat(v[None], count, 0)) for name, v in _ones().items()}


def _sizes(key: PRNGKeyArray, count: int) -> Instance:
    """Models with their parameters counted; a dot product as score in every other one."""
    draws = generator(key)
    rows = []
    for place in range(count):
        p, t, d, units, state = (int(k) for k in draws.integers(2, 9, 5))
        network = place % 2 == 0
        shape = {"state": state, "score_units": units} if network else {}
        state = state if network else t

        def build(key: PRNGKeyArray, t=t, d=d, shape=shape) -> RecurrentAttention:
            return make_recurrent_attention(key, t, d, 2, **shape)

        arrays = jax.tree.leaves(jax.eval_shape(build, key))
        # The reader's d + 1 biases are not in the paper.
        leaves = sum(array.size for array in arrays) - (d + 1)
        d_a = units * (state + t + 1) if network else 0
        d_f = state * (state + t + 1)
        rows.append((leaves, t * d + d + d_a + d_f, p * t * d + d + d_a + d_f))
    columns = zip(("leaves", "printed", "flattened"), np.array(rows, float).T, strict=True)
    return {name: jnp.asarray(column) for name, column in columns}


def _count(instance: Instance, formula: str) -> Sides:
    return Sides(instance["leaves"], instance[formula])


def _features(instance: Instance, end: str = "") -> Array:
    phi = rectify(instance[f"c{end}"] @ instance[f"W1{end}"])
    return phi - jnp.mean(phi, axis=0)[None, :]


def _spectrum(instance: Instance) -> Array:
    phi = _features(instance)
    return jnp.linalg.eigvalsh(phi.T @ phi / _POINTS)


def _error(instance: Instance, keep: float = 1.0) -> Sides:
    """The error against the gradient in w2 and what the features leave of the teacher's."""
    phi, phis = _features(instance), _features(instance, "_t")
    covariance = phi.T @ phi / _POINTS
    smallest = jnp.linalg.eigvalsh(covariance)[0]
    # Where a unit is dead nothing is claimed, and nothing is to be divided by.
    alive = jnp.where(smallest > 0, smallest, 1.0)
    solvable = jnp.where(smallest > 0, covariance, jnp.eye(_D, dtype=phi.dtype))
    target = phis @ instance["w2_t"]
    w2 = jnp.linalg.solve(solvable, phi.T @ target / _POINTS) + 0.01 * instance["w2"]
    u = phi @ w2 - target
    gradient = phi.T @ u / _POINTS
    residual = conditional_covariance(phis, phi).largest
    right = jnp.sum(gradient**2) / alive + keep * jnp.sum(instance["w2_t"] ** 2) * residual
    moments = jnp.mean((phi @ w2) ** 2) + jnp.mean(target**2)
    return Sides(jnp.mean(u**2), right, scale=right + moments)


def _norm(instance: Instance, names: dict[str, tuple[int, ...]]) -> Array:
    return jnp.sqrt(sum(jnp.sum(instance[name] ** 2) for name in names))


def _a8(instance: Instance) -> Array:
    """(A2) for the last weights, scaled to norm one: the two largest have all but tau of it."""
    falling = -jnp.sort(-instance["weights"], axis=1)
    lead = jnp.linalg.norm(falling[:, :2], axis=1) / jnp.linalg.norm(falling, axis=1)
    return jnp.all(lead >= 1 - _TAU)


def _a9(instance: Instance) -> Array:
    return (_norm(instance, _SCORE) <= _C_8) & (_norm(instance, _UPDATE) <= _C_9)


def _floor(instance: Instance, steps: int = 1) -> Sides:
    """The spread of a teacher of T = 3 against the error of T = 1, or of another T."""
    x = instance["x"] - jnp.mean(instance["x"], axis=2)[:, :, None]
    first, last = (_model(instance, "_t", count) for count in (steps, _STEPS))
    student = RecurrentAttention(
        first.W_s, first.W_c, first.b, DotScore(), _model(instance).network, steps
    )
    outputs = jax.vmap(last)(x)
    predicted = jax.vmap(student if steps == 1 else first)(x)
    error = jnp.mean((predicted - outputs) ** 2)
    return Sides(jnp.var(outputs), error, scale=jnp.mean(outputs**2) + error)


_COMMON: dict[str, Any] = {"paper": _PAPER, "count": 96, "terms": 16 * _POINTS}

WEIGHTS = Claim(
    name=f"{_PAPER}/appendix-b-weights",
    paper=_PAPER,
    locator="Appendix B, alpha_kj",
    statement=r"\alpha_{kj} = \frac{e_{kj}}{\sum_{j=1}^p e_{kj}} \ge 0",
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_no_draws,
    sides=partial(_weights, exponent=False),
    control=Control("exp(e_kj) in place of e_kj", sides=_weights, expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "exp is missing: scores may be negative"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_scores,
    note=(
        "A typo: scores 2 and -1 give 'weights' 2 and -1. With dot products and s_0 = 0 the first "
        "step would be 0/0."
    ),
)

LENGTHS = Claim(
    name=f"{_PAPER}/theorem-6-contexts",
    locator="Theorem 6, norm of a context, corrected",
    statement=(
        r"\left\| \sum_{j=1}^p a(x)_j x^j \right\|_2 \le \sqrt{t}\, C_x, \quad "
        r"\|x^j\|_\infty \le C_x"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_population,
    sides=_lengths,
    control=Control("C_x", sides=partial(_lengths, root=False)),
    note="A context is a mean of words; attained where all weight is on a word at a corner.",
    **_COMMON,
)

LENGTHS_PRINTED = Claim(
    name=f"{_PAPER}/theorem-6-features",
    paper=_PAPER,
    locator="Theorem 6, the factor C_1^2 C_x^2 eta^2",
    statement=r"\|\phi(\langle w^{(1)}, c_T \rangle)\|_2 \le C_1 C_x, \quad \|x\|_\infty \le C_x",
    kind=Kind.INEQUALITY,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.DERIVED,
    instances=_one_instance,
    sides=partial(_one_word, root=False),
    control=Control("times sqrt(t)", sides=partial(_one_word, root=True), expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "a word of t entries has norm sqrt(t) C_x"),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    witness=_ones,
    note=(
        "The formula of the proof is not in our text; eta = C_1 C_2 C_x and the factor C_1^2 C_x^2 "
        "are those of this bound. With (A1.1), entries below C_x, Theorem 6 lacks a factor t^2; "
        "with C_x a bound of the words' norms it does not."
    ),
)

PARAMETERS = Claim(
    name=f"{_PAPER}/theorem-6-parameters",
    locator="Theorem 6, the factor td + d + d_a + d_f",
    statement=r"\#w = td + d + d_a + d_f",
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_sizes,
    sides=partial(_count, formula="printed"),
    count=32,
    control=Control("ptd, of flattened words", sides=partial(_count, formula="flattened")),
    note=(
        "No p: a recurrent model reads one context. d_a = a (r + t + 1) for a score of a tanh "
        "units, 0 for a dot product; d_f = r (r + t + 1) for a plain recurrent update."
    ),
    paper=_PAPER,
)

ERROR = Claim(
    name=f"{_PAPER}/theorem-6-error",
    locator="Theorem 6, from the gradient to the error",
    statement=(
        r"E u^2 \le \frac{\|E[u \Phi]\|^2}{\lambda_{\min}(\mathrm{Cov}\, \Phi)}"
        r"+ C_2^2 \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi)), \quad "
        r"\Phi = \phi(\langle w^{(1)}, c_T \rangle)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_population,
    sides=_error,
    control=Control("without the residual", sides=partial(_error, keep=0.0)),
    assumptions=(
        Assumption("(A8) two weights hold all but .25 of the last step's norm", _a8),
        Assumption("(A9) parameters of score and update within 200 and 10", _a9),
        Assumption(
            "no unit is dead or repeated",
            lambda i: _spectrum(i)[0] > 1e-6 * _spectrum(i)[-1],
        ),
    ),
    note=(
        "Near the best second layer. (A7) holds by construction. (A8) is printed as '(A2) holds "
        "when we substitute' and the proof cites '(A15)'; what is needed is (A3), the residual "
        "here. (A2) is checked, but plays no part. 'As Theorem 7 says' means Theorem 6."
    ),
    **_COMMON,
)

FLOOR = Claim(
    name=f"{_PAPER}/appendix-b-floor",
    locator="Appendix B, 'with an over-simple design'",
    statement=(
        r"T = 1,\ \mathrm{score}(s, x) = s^\top x,\ \sum_j x^j = 0: \quad "
        r"\mathrm{Var}(E(y|x)) \le E(\hat{y}^{(1)} - E(y|x))^2 \quad \text{for all}\quad w"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_population,
    sides=_floor,
    control=Control("T = 3, the teacher itself", sides=partial(_floor, steps=_STEPS)),
    note=(
        "The trade-off of expressiveness and size at its simple end, a dot product as score: from "
        "s_0 = 0 the first weights are equal, c_1 is the words' mean and the prediction does not "
        "see them. More steps need no more parameters. The other end of the trade-off is the "
        "count d_a + d_f of theorem-6-parameters."
    ),
    **_COMMON,
)
