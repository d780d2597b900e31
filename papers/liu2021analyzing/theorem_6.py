r"""Theorem 6 (appendix B): recurrent attention; weights, features, count, and the trade-off.

The network that reads c_T has no biases.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.measures.conditional_covariance import conditional_covariance
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.recurrent_attention import (
    DotScore,
    NetworkScore,
    RecurrentAttention,
    make_recurrent_attention,
)
from liu2021analyzing.library.models.two_layer import TwoLayer

_T, _P, _D, _STEPS, _POINTS = 2, 4, 2, 3, 16
_SCORE = {"V_s": (_T, _T), "V_x": (_T, _T), "v": (_T,)}
_UPDATE = {"W_s": (_T, _T), "W_c": (_T, _T), "b": (_T,)}
_READER = {"W1": (_T, _D), "w2": (_D,)}
_WEIGHTS = (*_SCORE, *_UPDATE, *_READER)
_ROUNDINGS = 16 * _POINTS


def recurrent(V_s, V_x, v, W_s, W_c, b, W1, w2, steps=_STEPS):
    """The network, its score a network as well."""
    return RecurrentAttention(W_s, W_c, b, NetworkScore(V_s, V_x, v), TwoLayer(W1, w2), steps)


def population(rng, count):
    """Inputs, a teacher (..._t) and a student, which is its neighbour in every other one.

    Beside the arrays the last weights of the student, and the contexts c and c_t of both.
    """
    rng = apart(rng)
    batch = {"x": rng.uniform(-2, 2, (count, _POINTS, _T, _P))}
    near = (np.arange(count) % 2 == 0)[:, None, None]
    for name, shape in {**_SCORE, **_UPDATE, **_READER}.items():
        teacher = 2 * rng.normal(size=(count, *shape))
        distant = 2 * rng.normal(size=(count, *shape))
        close = near if len(shape) == 2 else near[:, :, 0]
        batch[f"{name}_t"] = teacher
        batch[name] = np.where(close, teacher + 0.01 * distant, distant)
    # One word of every input is at a corner, and some score it far above the others.
    batch["x"][:, :, :, 0] = 2 * rng.choice([-1.0, 1.0], (count, _POINTS, _T))
    batch["v"] *= six_decades(rng, count, -1, 1.5)[:, None]
    batch["v_t"] *= six_decades(rng, count, -1, 1.5)[:, None]
    student, teacher = ([batch[name + end] for name in _WEIGHTS] for end in ("", "_t"))
    pairs = [jnp.stack(pair) for pair in zip(student, teacher, strict=True)]
    weights, contexts = _attended(on_device(batch["x"]), *pairs)
    batch |= {"weights": weights[0], "c": contexts[0], "c_t": contexts[1]}
    # Some second layers of teachers lie where the least of the features is explained.
    missed = _missed(*(on_device(batch[name]) for name in ("c", "W1", "c_t", "W1_t")))
    length = np.linalg.norm(batch["w2_t"], axis=1, keepdims=True)
    batch["w2_t"][1::4] = (length * np.asarray(missed))[1::4]
    return batch


@jax.jit
@jax.vmap
def _missed(c, W1, c_t, W1_t):
    """The direction of the teacher's features that the student's explain least."""
    unexplained = conditional_covariance(features(c_t, W1_t), features(c, W1))
    return jnp.linalg.eigh(unexplained.covariance)[1][:, -1]


@jax.jit
def _attended(x, *weights):
    """Last weights and contexts of student and teacher; two models run as one."""

    def last(x, *weights):
        model = recurrent(*weights)
        attention = jax.vmap(lambda sample: model.attention(sample)[-1])(x)
        # c_T as the model's own output: phi(c) - phi(-c) for each entry.
        signs = jnp.array([1.0, -1.0])
        layers = [TwoLayer(jnp.outer(e, signs), signs) for e in jnp.eye(_T)]
        contexts = [jax.vmap(eqx.tree_at(lambda m: m.network, model, w))(x) for w in layers]
        return attention, jnp.stack(contexts, axis=1)

    return jax.vmap(lambda *weights: jax.vmap(last)(x, *weights))(*weights)


def both_signs():
    """Scores of both signs, as dot products have."""
    return {"scores": np.array([2.0, -1.0])}


@erratum(
    r"Appendix B, $\alpha_{kj}$",
    witness=both_signs,
    reason=r"$\exp$ is missing: scores may be negative",
    corrected=Control(r"$\exp(e_{kj})$ in place of $e_{kj}$", exponent=True),
)
def appendix_b_weights(scores, *, exponent=False):
    r"""$$\alpha_{kj} = \frac{e_{kj}}{\sum_{j=1}^p e_{kj}} \ge 0$$

    A typo: scores 2 and $-1$ give 'weights' 2 and $-1$. With dot products and $s_0 = 0$ the first
    step would be $0/0$.
    """
    shares = jax.nn.softmax(scores) if exponent else scores / jnp.sum(scores)
    return Sides(-shares, jnp.zeros_like(shares), jnp.ones_like(shares))


@inequality(
    "Theorem 6, norm of a context, corrected",
    sample=population,
    status=Status.CORRECTED,
    count=96,
    roundings=_ROUNDINGS,
    controls=[Control("$C_x$", root=1.0)],
    evaluations=1152,
)
def theorem_6_contexts(x, c, *, root=_T**0.5):
    r"""$$\left\| \sum_{j=1}^p a(x)_j x^j \right\|_2 \le \sqrt{t}\, C_x, \quad
    \|x^j\|_\infty \le C_x$$

    A context is a mean of words; attained where all weight is on a word at a corner.
    """
    left = jnp.linalg.norm(c, axis=1)
    return left, jnp.broadcast_to(root * jnp.max(jnp.abs(x)), left.shape)


def one_word():
    """One input of one word (1, 1), read by one unit along it."""
    return {"x": np.ones((2, 1)), "W1": np.full((2, 1), np.sqrt(0.5))}


@erratum(
    r"Theorem 6, the factor $C_1^2 C_x^2 \eta^2$",
    Source.DERIVED,
    witness=one_word,
    reason=r"a word of $t$ entries has norm $\sqrt{t}\, C_x$",
    corrected=Control(r"times $\sqrt{t}$", root=np.sqrt(2)),
)
def theorem_6_features(x, W1, *, root=1.0):
    r"""$$\|\phi(\langle w^{(1)}, c_T \rangle)\|_2 \le C_1 C_x, \quad \|x\|_\infty \le C_x$$

    The context of one word is that word. The formula of the proof is not in our text;
    $\eta = C_1 C_2 C_x$ and the factor $C_1^2 C_x^2$ are those of this bound. With (A1.1), entries
    below $C_x$, Theorem 6 lacks a factor $t^2$; with $C_x$ a bound of the words' norms it does not.
    """
    norm = jnp.linalg.norm(W1) * jnp.max(jnp.abs(x))
    return jnp.linalg.norm(rectify(x[:, 0] @ W1)), root * norm


def counted(rng, count):
    """Models with their parameters counted; a dot product as score in every other one."""
    rows = []
    for place in range(count):
        p, t, d, units, state = (int(k) for k in rng.integers(2, 9, 5))
        network = place % 2 == 0
        shape = {"state": state, "score_units": units} if network else {}
        state = state if network else t

        def build(key, t=t, d=d, shape=shape):
            return make_recurrent_attention(key, t, d, 2, **shape)

        arrays = jax.tree.leaves(jax.eval_shape(build, jax.random.key(0)))
        # The reader's d + 1 biases are not in the paper.
        leaves = sum(array.size for array in arrays) - (d + 1)
        d_a = units * (state + t + 1) if network else 0
        d_f = state * (state + t + 1)
        rows.append((leaves, t * d + d + d_a + d_f, p * t * d + d + d_a + d_f))
    leaves, printed, flattened = np.array(rows, float).T
    return {"leaves": leaves, "printed": printed, "flattened": flattened}


@identity(
    r"Theorem 6, the factor $td + d + d_a + d_f$",
    Source.FOUND,
    sample=counted,
    count=32,
    controls=[Control("$ptd$, of flattened words", words=True)],
)
def theorem_6_parameters(leaves, printed, flattened, *, words=False):
    r"""$$\#w = td + d + d_a + d_f$$

    No $p$: a recurrent model reads one context. $d_a = a (r + t + 1)$ for a score of $a$ tanh
    units, 0 for a dot product; $d_f = r (r + t + 1)$ for a plain recurrent update.
    """
    return leaves, flattened if words else printed


def features(c, W1):
    """Centred features of the contexts."""
    phi = rectify(c @ W1)
    return phi - jnp.mean(phi, axis=0)[None, :]


def norm(*arrays):
    """Norm of some arrays together."""
    return jnp.sqrt(sum(jnp.sum(part**2) for part in arrays))


def two_weights_lead(weights):
    """(A2) for the last weights, scaled to norm one: the two largest have all but tau of it."""
    falling = -jnp.sort(-weights, axis=1)
    lead = jnp.linalg.norm(falling[:, :2], axis=1) / jnp.linalg.norm(falling, axis=1)
    return jnp.all(lead >= 0.75)


def no_unit_is_dead(c, W1):
    """Whether the covariance of the features is regular."""
    phi = features(c, W1)
    spectrum = jnp.linalg.eigvalsh(phi.T @ phi / _POINTS)
    return spectrum[0] > 1e-6 * spectrum[-1]


@inequality(
    "Theorem 6, from the gradient to the error",
    sample=population,
    status=Status.CORRECTED,
    assumptions=[
        assume("(A8) two weights hold all but .25 of the last step's norm", two_weights_lead),
        assume(
            "(A9) parameters of score and update within 200 and 10",
            lambda V_s, V_x, v, W_s, W_c, b: (norm(V_s, V_x, v) <= 200) & (norm(W_s, W_c, b) <= 10),
        ),
        assume("no unit is dead or repeated", no_unit_is_dead),
    ],
    count=96,
    roundings=_ROUNDINGS,
    search_over=("c", "W1", "w2", "c_t", "W1_t", "w2_t"),
    controls=[
        Control("without the residual", keep=0.0),
        Control("nine tenths of the residual", keep=0.9),
    ],
)
def theorem_6_error(c, W1, w2, c_t, W1_t, w2_t, *, keep=1.0):
    r"""$$E u = 0: \quad E u^2 \le \frac{\|E[u \Phi]\|^2}{\lambda_{\min}(\mathrm{Cov}\, \Phi)}
    + C_2^2 \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi)), \quad
    \Phi = \phi(\langle w^{(1)}, c_T \rangle)$$

    Near the best second layer, outputs and features centred. (A7) holds by construction. (A8) is
    printed as '(A2) holds when we substitute' and the proof cites '(A15)'; what is needed is (A3),
    the residual here. (A2) is checked, but plays no part. 'As Theorem 7 says' means Theorem 6.
    """
    phi, phis = features(c, W1), features(c_t, W1_t)
    covariance = phi.T @ phi / _POINTS
    smallest = jnp.linalg.eigvalsh(covariance)[0]
    # Where a unit is dead nothing is claimed, and nothing is to be divided by.
    alive = jnp.where(smallest > 0, smallest, 1.0)
    solvable = jnp.where(smallest > 0, covariance, jnp.eye(_D))
    target = phis @ w2_t
    second = jnp.linalg.solve(solvable, phi.T @ target / _POINTS) + 0.01 * w2
    u = phi @ second - target
    gradient = phi.T @ u / _POINTS
    residual = conditional_covariance(phis, phi).largest
    right = jnp.sum(gradient**2) / alive + keep * jnp.sum(w2_t**2) * residual
    moments = jnp.mean((phi @ second) ** 2) + jnp.mean(target**2)
    return Sides(jnp.mean(u**2), right, right + moments)


@inequality(
    "Appendix B, 'with an over-simple design'",
    sample=population,
    status=Status.NEW,
    count=96,
    roundings=_ROUNDINGS,
    search_over=("W1", "w2"),
    controls=[
        Control("$T = 3$, the teacher itself", one_step=False),
        Control("half of the squared error, as in a loss", part=0.5),
    ],
)
def appendix_b_floor(
    x, W1, w2, V_s_t, V_x_t, v_t, W_s_t, W_c_t, b_t, W1_t, w2_t, *, one_step=True, part=1.0
):
    r"""$$T = 1,\ \mathrm{score}(s, x) = s^\top x,\ \tfrac1p \sum_j x^j = m: \quad
    \mathrm{Var}(E(y|x)) \le E(\hat{y}^{(1)} - E(y|x))^2 \quad \text{for all}\quad w$$

    The trade-off of expressiveness and size at its simple end, a dot product as score: from
    $s_0 = 0$ the first weights are equal, $c_1$ is the words' mean, here $m = (1, \dots, 1)$ for
    all inputs, and the prediction is one number. Attained where it is the teacher's mean. More
    steps need no more parameters. The other end of the trade-off is the count $d_a + d_f$ of
    theorem-6-parameters.
    """
    words = 1 + x - jnp.mean(x, axis=2)[:, :, None]
    teacher = recurrent(V_s_t, V_x_t, v_t, W_s_t, W_c_t, b_t, W1_t, w2_t)
    student = RecurrentAttention(W_s_t, W_c_t, b_t, DotScore(), TwoLayer(W1, w2), 1)
    outputs = jax.vmap(teacher)(words)
    predicted = jax.vmap(student)(words) if one_step else outputs
    error = part * jnp.mean((predicted - outputs) ** 2)
    return Sides(jnp.var(outputs), error, jnp.mean(outputs**2) + error)
