r"""Definition 1 (good initialisation), Proposition 7 and Assumption 2.

The target is theta_0 + c theta_star; the direction theta_star comes from the hard-margin SVM in the
tangent features. Three starts in turn: zero; one step from zero on
other samples, half of the heads with alpha = 1 and half with -1; Gaussian heads in opposite pairs.
Each has output zero, so that B_Phi = 1.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import on_device
from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_training import deora2023_head_norm_bound
from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import shared
from attlas.claims.statement import inequality
from attlas.kernels.multi_head_ntk import ntk_features
from attlas.models.attention.multi_head import MultiHead
from attlas.optim.one_step import one_step_initialisation
from attlas.solvers.kernel_svm import kernel_svm_batch
from deora2023optimization.instances import (
    ROUNDINGS,
    largest_head,
    margins,
    risk,
    spread_tokens,
    squared_distance,
)
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_target_distance,
    deora2023_target_heads,
    deora2023_target_scale,
)
from deora2023optimization.stability_instances import ATOMS, LONGEST, train_on_all_sets

B_PHI = 1.0
"""The smallest value that P2 allows; the outputs of these starts are zero."""
TOKENS, MANY = 4, 16
"""Tokens of a sample; of the trainings, whose bounds are nearer where there are more of them."""


def _samples(rng, count, n, tokens):
    """One token of the class and uninformative ones in random order, d = 2."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0) * np.ones((count, 1))
    X = spread_tokens(rng, count, n, tokens, 2) * rng.uniform(0.2, 1, (count, 1, 1, 1))
    classes = np.where(y[..., None] > 0, [1.0, 0.0], [0.0, 1.0])
    place = rng.integers(tokens, size=(count, n))
    rows, columns = np.indices((count, n))
    X[rows, columns, place] = classes
    return X, y


def _starts(rng, count, R, tokens):
    """U and W of two groups of equal heads, U_2 = -U_1 and W_2 = W_1."""
    U = rng.normal(size=(count, 2, tokens, 2)) * rng.uniform(0.1, 0.5, (count, 1, 1, 1))
    W = rng.normal(size=(count, 2, 2, 2)) * rng.uniform(0.1, 0.5, (count, 1, 1, 1))
    X, y = _samples(rng, count, 8, tokens)
    U[::3], W[::3], W[1::3] = 0, 0, 0
    key = jax.random.key(0)
    for k in range(1, count, 3):
        first = one_step_initialisation(key, jnp.asarray(X[k] * R[k]), jnp.asarray(y[k]), 1)
        U[k] = first.U[0]
    U[:, 1], W[:, 1] = -U[:, 0], W[:, 0]
    return U, W


def margin_direction(batch):
    """The separating direction of P3 by the SVM in the tangent features, of norm sqrt(2).

    star_U and star_W for one copy of each group if there is one copy (for m copies divide by
    sqrt(m)), margin (gamma, that of this direction), margin_above (its upper bound), certified.
    """
    U, W, X = (on_device(batch[name]) for name in "UWX")
    features = jax.jit(jax.vmap(lambda U, W, X: ntk_features(MultiHead(U, W), X)))
    phi = np.asarray(features(U, W, X))
    svm = kernel_svm_batch(phi @ phi.transpose(0, 2, 1), batch["y"])
    star = np.einsum("bi,bip->bp", svm.certificate["alpha"], phi)
    # Features that nearly cancel leave a norm that is 1 up to their rounding only.
    star *= np.sqrt(2) / np.linalg.norm(star, axis=1, keepdims=True)
    half = batch["U"][0].size
    return {
        "star_U": star[:, :half].reshape(batch["U"].shape),
        "star_W": star[:, half:].reshape(batch["W"].shape),
        "margin": np.min(batch["y"] * np.einsum("bip,bp->bi", phi, star), axis=1),
        "margin_above": np.sqrt(2) * np.asarray(svm.certificate["upper"]),
        "certified": np.asarray(svm.converged),
    }


def target_of(start, epsilon, copies):
    """U and W of theta_0 + c theta_star of Proposition 7, which is to have risk `epsilon`."""
    c = deora2023_target_scale(B_PHI, start["margin"], epsilon) / jnp.sqrt(copies)
    return start["U"] + c * start["star_U"], start["W"] + c * start["star_W"]


def largest_start(start) -> Array:
    """B_2 of P1, at least 1."""
    return jnp.maximum(largest_head(start["U"], start["W"]), 1)


def _radius(start):
    """D = sqrt(2) g_0(1/K), and x = 3 D + B_2 + D, which bounds the heads of all iterates."""
    D = deora2023_target_distance(B_PHI, start["margin"], 1 / start["K"])
    return D, deora2023_head_norm_bound(D, largest_start(start) + D, "printed")


def heads_needed(start) -> Array:
    """Heads of Corollary 2: sqrt(H) >= 72 beta_3 D^2 at D = sqrt(2) g_0(1/K), beta_3 sharp.

    This exceeds what Proposition 7 requires.
    """
    D, x = _radius(start)
    T, d = start["X"].shape[-2:]
    root = 72 * deora2023_beta_3(T, d, start["R"], x, "sharp") * D**2
    return jnp.ceil(root**2)


def step_allowed(start) -> Array:
    """The step size of Corollary 2, sharp 1/beta_2 and 1/beta_1^2 in place of the smaller 1/rho.

    min(1, 1/beta_2, 1/beta_1^2, 4 B_Phi^2 / (gamma^2 log(1 + exp(B_Phi)))).
    """
    _, x = _radius(start)
    (T, d), R, H = start["X"].shape[-2:], start["R"], len(start["U"]) * start["copies"]
    smooth = deora2023_beta_2(T, d, R, x, H, "sharp")
    smooth = jnp.maximum(smooth, deora2023_beta_1(T, R, x, "sharp") ** 2)
    first = 4 * B_PHI**2 / (start["margin"] ** 2 * jnp.logaddexp(0.0, B_PHI))
    return jnp.minimum(jnp.minimum(1 / smooth, first), 1)


GOOD = (
    assume(
        "the margin in the tangent features is certified and positive",
        lambda certified, margin: certified & (margin > 0),
    ),
)
COROLLARY_2 = (
    *GOOD,
    assume(
        r"$\sqrt H$ is at least $72 \beta_3 (\sqrt 2 g_0(1/K))^2$",
        lambda U, copies, **arrays: len(U) * copies >= heads_needed({**arrays, "U": U}),
    ),
    # Computed twice in another order: a few roundings apart.
    assume(
        "the step size satisfies Corollary 2",
        lambda **run: run["eta"] <= step_allowed(run) * (1 + 1e-12),
    ),
    assume("R is at least 1", lambda R: R >= 1),
)


@jax.jit
def _size(batch):
    """Heads, target and step size of a batch of starts."""

    def size(start):
        copies = jnp.ceil(start["spare"] * heads_needed(start) / len(start["U"])) + 1
        run = {**start, "copies": copies}
        target = target_of(run, 1 / start["K"], copies)
        eta = start["part"] * step_allowed(run)
        return {**run, "U_target": target[0], "W_target": target[1], "eta": eta}

    return jax.vmap(size)(batch)


@shared
def good_initialisations(rng, count, tokens=TOKENS):
    """Starts that satisfy Definition 1, three samples.

    From `MANY` tokens on half of them start at zero with all tokens of the class, the largest
    margin that there is: of two opposite classes, or of orthogonal ones, of which a training set
    that lacks one learns nothing about it. With X, y, R, U, W, star_U, star_W (for one copy),
    margin, margin_above, certified, epsilon and K.
    """
    rng = apart(rng)
    tried = count + count // 4
    R = rng.uniform(1, 1.5, tried)
    X, y = _samples(rng, tried, ATOMS, tokens)
    U, W = _starts(rng, tried, R, tokens)
    if tokens >= MANY:
        R[::2], U[::2], W[::2] = 1, 0, 0
        X[::2], X[::4] = [[[1, 0]], [[0, 1]], [[1, 0]]], [[[1, 0]], [[-1, 0]], [[1, 0]]]
    batch = {"X": X * R[:, None, None, None], "y": y, "R": R, "U": U, "W": W}
    batch |= margin_direction(batch)
    # A few draws cannot be separated in the features of their start: they come last.
    keep = np.argsort(~batch["certified"], kind="stable")[:count]
    batch = {name: value[keep] for name, value in batch.items()}
    batch["K"] = np.floor(2 ** rng.uniform(0, np.log2(LONGEST), count))
    batch["epsilon"] = 10 ** rng.uniform(-3, -0.1, count)
    batch["spare"] = 10 ** rng.uniform(0, 0.6, count)
    batch["part"] = np.where(rng.random(count) < 0.5, 1, rng.uniform(0.1, 1, count))
    batch["probability"] = rng.dirichlet(np.ones(ATOMS), count)
    if tokens >= MANY:
        # One step, and sets that often lack the second class, come nearest to the bounds on risks,
        # and the longest runs to that on the distance.
        single = np.isin(keep % 8, (0, 2))
        batch["K"][keep % 8 == 4] = LONGEST
        batch["K"][single], batch["probability"][single] = 1, (0.4, 0.2, 0.4)
    return batch


def good_trainings(rng, count):
    """The same of `MANY` tokens, trained on all training sets of their atoms as Corollary 2 asks.

    With copies, eta, the target of risk 1/K, and what `train_on_all_sets` adds.
    """
    return train_on_all_sets(_size(good_initialisations(rng, count, MANY)))


def unstable_trainings(rng, count, times=20.0):
    """One step from zero of many times the stable length, which leaves a sample misclassified.

    Two equal samples and one of the other class, at an angle whose cosine is 0.9, of equal tokens:
    the step follows the two. Stable is 2 over the largest curvature of their risk at the start.
    """
    batch = good_initialisations(rng, count, MANY)
    batch |= {name: np.zeros_like(batch[name]) for name in "UW"}
    x = np.array([[1, 0], [0.9, np.sqrt(1 - 0.9**2)], [1, 0]])
    batch["X"] = np.broadcast_to(x[:, None], batch["X"].shape).copy()
    batch |= {name: np.ones(count) for name in ("R", "K", "spare")}
    batch["probability"] = np.broadcast_to((0.4, 0.2, 0.4), batch["probability"].shape)
    run = _size(batch | margin_direction(batch))
    curvature = MANY * np.linalg.eigvalsh(x.T @ x)[-1] / (4 * len(x))
    return train_on_all_sets({**run, "eta": np.full(count, times * 2 / curvature)})


_CHAIN = "Corollary 2"

_SHUFFLED = Control("labels shuffled", shuffled=True)
on_good_starts = partial(
    inequality,
    sample=good_initialisations,
    assumptions=GOOD,
    roundings=ROUNDINGS,
    count=48,
    evaluations=384,
)


def _labels(y, shuffled):
    """The labels, or those of other samples: two of three change."""
    return jnp.roll(y, 1) if shuffled else y


@on_good_starts(
    "Definition 1, P3",
    controls=[_SHUFFLED, Control(r"1.1 times $\gamma$", factor=1.1)],
)
def definition_1_p3(
    X, y, U, W, star_U, star_W, margin, margin_above, *, shuffled=False, factor=1.0
):
    r"""$$\gamma \le \min_i y_i \langle \nabla\tilde\Phi(X_i;\theta_0), \theta_\star\rangle,\quad
    \|\theta_\star\| = \sqrt 2$$

    $\gamma$ is the certified margin of the SVM on the tangent kernel, the right side a
    directional derivative of the model. Starts: zero, one step from zero, Gaussian heads in
    opposite pairs. P1 and P2 hold with $B_2 = \max(1, \text{largest head})$ and $B_\Phi = 1$.
    """
    data = {"X": X, "y": _labels(y, shuffled), "copies": jnp.ones(())}

    def model(U, W):
        return margins(data, U, W)

    _, slopes = jax.jvp(model, (U, W), (star_U, star_W))
    # Features may nearly cancel along theta_star: their terms are what is rounded.
    by_U, by_W = jax.jacrev(model, (0, 1))(U, W)
    size = jnp.max(jnp.sum(jnp.abs(by_U * star_U), (1, 2, 3)))
    size += jnp.max(jnp.sum(jnp.abs(by_W * star_W), (1, 2, 3)))
    least, error = jnp.min(slopes), margin_above - margin
    return Sides(factor * margin, least, magnitude=size, error=error)


def _with_heads(start, shuffled):
    """As many heads as Proposition 7 requires, and the target."""
    T, d = start["X"].shape[-2:]
    at = Start(T, d, start["R"], largest_start(start), B_PHI, start["margin"])
    needed = deora2023_target_heads(at, start["epsilon"], "printed")
    copies = jnp.ceil(needed / len(start["U"]))
    run = {**start, "y": _labels(start["y"], shuffled), "copies": copies}
    return run, target_of(start, start["epsilon"], copies)


@on_good_starts(
    "Proposition 7, proof",
    controls=[_SHUFFLED, Control("1.1 times the right side", factor=1.1)],
    proof_step=ProofStep(_CHAIN, 1),
)
def proposition_7_margin(*, shuffled=False, factor=1.0, **start):
    r"""$$\min_i y_i \tilde\Phi(X_i;\theta_{(\epsilon)}) \ge -B_\Phi + c\gamma -
    \frac{c^2\|\theta_\star\|^2}{2} \frac{\beta_3}{\sqrt H},\quad
    c = \frac{2B_\Phi + \log(1/\epsilon)}{\gamma}$$

    With the outputs at the start themselves in place of $B_\Phi$, and $\beta_3$ on the segment.
    """
    U, W, gamma = start["U"], start["W"], start["margin"]
    run, target = _with_heads(start, shuffled)
    (T, d), H = start["X"].shape[-2:], len(U) * run["copies"]
    x = jnp.maximum(largest_head(*target), largest_head(U, W))
    c = deora2023_target_scale(B_PHI, gamma, start["epsilon"])
    lost = c**2 * deora2023_beta_3(T, d, start["R"], x, "printed") / jnp.sqrt(H)
    left = c * gamma - jnp.max(jnp.abs(margins(run, U, W))) - lost
    return Sides(factor * left, jnp.min(margins(run, *target)), magnitude=c * gamma + B_PHI)


@on_good_starts(
    "Proposition 7; Assumption 2 under Definition 1",
    controls=[_SHUFFLED, Control("an eighth of each", share=0.125)],
    proof_step=ProofStep(_CHAIN, 2),
)
def proposition_7(*, shuffled=False, share=1.0, **start):
    r"""$$\sqrt H \ge \frac{c^2\beta_3(B_2 + \sqrt 2 c)}{B_\Phi} \;\Rightarrow\;
    \widehat{L}(\theta_{(\epsilon)}) \le \epsilon,\quad
    \|\theta_{(\epsilon)} - \theta_0\| \le g_0(\epsilon) = \sqrt 2 c,\quad
    \|\theta_{(\epsilon)}\|_{2,\infty} \le g(\epsilon) = B_2 + \sqrt 2 c$$

    The number of heads is the smallest that the condition allows. The distance is exactly
    $\sqrt 2 c$, as P3 has norm $\sqrt 2$: Corollary 2 takes $g_0 = c$. Both functions fall with
    $\epsilon$, as Assumption 2 asks. The risk is at most $.135 = \exp(-2 B_\Phi)$ times
    $\epsilon$: twice $B_\Phi$ is given away where the outputs at the start are zero.
    """
    run, target = _with_heads(start, shuffled)
    copies, U, W, epsilon = (run[name] for name in ("copies", "U", "W", "epsilon"))
    moved = jnp.sqrt(squared_distance(copies, target[0] - U, target[1] - W))
    g_0 = deora2023_target_distance(B_PHI, start["margin"], epsilon)
    measured = jnp.stack([risk(run, *target), moved, largest_head(*target)])
    bounds = jnp.stack([epsilon, g_0, largest_start(start) + g_0])
    # The target is far in the sum over all heads and near in each: the difference cancels.
    far = jnp.sqrt(squared_distance(copies, U, W)) + g_0
    return Sides(measured, share * bounds, magnitude=jnp.stack([jnp.ones(()), far, bounds[2]]))
