r"""Good initialisations (Definition 1), their targets (Proposition 7) and trainings (Corollary 2).

Three starts in turn: zero; one step from zero on other samples, half of the heads with alpha = 1
and half with -1; Gaussian heads in opposite pairs. Each has output zero, so that B_Phi = 1. The
direction theta_star comes from the hard-margin SVM in the features of the tangent kernel.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_initialisation import (
    deora2023_target_distance,
    deora2023_target_scale,
)
from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_training import deora2023_head_norm_bound
from attlas.claims.deora2023optimization.instances import heads, spread_tokens
from attlas.claims.deora2023optimization.stability_instances import (
    ATOMS,
    LONGEST,
    train_on_all_sets,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import Assumption, Instance
from attlas.kernels.multi_head_ntk import ntk_features
from attlas.models.attention.multi_head import MultiHead
from attlas.optim.one_step import one_step_initialisation
from attlas.solvers.kernel_svm import kernel_svm_batch

B_PHI = 1.0
"""The smallest value that P2 allows; the outputs of these starts are zero."""


def _samples(rng: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """One token of the class and one that says nothing, in random order, T = d = 2."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0) * np.ones((count, 1))
    X = spread_tokens(rng, count, n, 2, 2) * rng.uniform(0.2, 1, (count, 1, 1, 1))
    classes = np.where(y[..., None] > 0, [1.0, 0.0], [0.0, 1.0])
    place = rng.integers(2, size=(count, n))
    rows, columns = np.indices((count, n))
    X[rows, columns, place] = classes
    return X, y


def _starts(rng: np.random.Generator, count: int, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and W of two groups of equal heads, U_2 = -U_1 and W_2 = W_1."""
    U = rng.normal(size=(count, 2, 2, 2)) * rng.uniform(0.1, 0.5, (count, 1, 1, 1))
    W = rng.normal(size=(count, 2, 2, 2)) * rng.uniform(0.1, 0.5, (count, 1, 1, 1))
    X, y = _samples(rng, count, 8)
    U[::3], W[::3], W[1::3] = 0, 0, 0
    key = jax.random.key(0)
    for k in range(1, count, 3):
        first = one_step_initialisation(key, jnp.asarray(X[k] * R[k]), jnp.asarray(y[k]), 1)
        U[k] = first.U[0]
    U[:, 1], W[:, 1] = -U[:, 0], W[:, 0]
    return U, W


def margin_direction(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The separating direction of P3 by the SVM in the tangent features, of norm sqrt(2).

    Args:
        batch: X, y, U, W of models with groups of equal heads.

    Returns:
        star_U and star_W for one copy of each group if there is one copy (for m copies divide by
        sqrt(m)), margin (gamma, that of this direction), margin_above (its upper bound), certified.
    """
    U, W, X = (jnp.asarray(batch[name]) for name in "UWX")
    features = jax.jit(jax.vmap(lambda U, W, X: ntk_features(MultiHead(U, W), X)))
    phi = np.asarray(features(U, W, X))
    found = kernel_svm_batch(phi @ phi.transpose(0, 2, 1), batch["y"])
    star = np.einsum("bi,bip->bp", found.certificate["alpha"], phi)
    # Features that nearly cancel leave a norm that is 1 up to their rounding only.
    star *= np.sqrt(2) / np.linalg.norm(star, axis=1, keepdims=True)
    half = batch["U"][0].size
    return {
        "star_U": star[:, :half].reshape(batch["U"].shape),
        "star_W": star[:, half:].reshape(batch["W"].shape),
        "margin": np.min(batch["y"] * np.einsum("bip,bp->bi", phi, star), axis=1),
        "margin_above": np.sqrt(2) * np.asarray(found.certificate["upper"]),
        "certified": np.asarray(found.converged),
    }


def target_of(instance: Instance, epsilon: Array | float, copies: Array) -> tuple[Array, Array]:
    """theta_0 + c theta_star of Proposition 7.

    Args:
        instance: with U, W, star_U, star_W, margin.
        epsilon: risk that the target is to have.
        copies: number of equal heads of a group.

    Returns:
        U and W of the target.
    """
    c = deora2023_target_scale(B_PHI, instance["margin"], epsilon) / jnp.sqrt(copies)
    return instance["U"] + c * instance["star_U"], instance["W"] + c * instance["star_W"]


def largest_start(instance: Instance) -> Array:
    """B_2 of P1, at least 1.

    Args:
        instance: with U, W.

    Returns:
        The bound.
    """
    squares = jnp.sum(instance["U"] ** 2, axis=(1, 2)) + jnp.sum(instance["W"] ** 2, axis=(1, 2))
    return jnp.maximum(jnp.sqrt(jnp.max(squares)), 1)


def _radius(instance: Instance) -> tuple[Array, Array]:
    """D = sqrt(2) g_0(1/K), and x = 3 D + B_2 + D, which bounds the heads of all iterates."""
    D = deora2023_target_distance(B_PHI, instance["margin"], 1 / instance["K"])
    return D, deora2023_head_norm_bound(D, largest_start(instance) + D)


def heads_needed(instance: Instance) -> Array:
    """Heads of Corollary 2: sqrt(H) >= 72 beta_3 D^2 at D = sqrt(2) g_0(1/K), beta_3 sharp.

    Args:
        instance: with X, R, U, W, margin, K.

    Returns:
        The number of heads; it exceeds what Proposition 7 asks for.
    """
    D, x = _radius(instance)
    T, d = instance["X"].shape[-2:]
    root = 72 * deora2023_beta_3(T, d, instance["R"], x, "sharp") * D**2
    return jnp.ceil(root**2)


def step_allowed(instance: Instance) -> Array:
    """The step size of Corollary 2, sharp 1/beta_2 and 1/beta_1^2 in place of the smaller 1/rho.

    Args:
        instance: with X, R, U, W, margin, K, copies.

    Returns:
        min(1, 1/beta_2, 1/beta_1^2, 4 B_Phi^2 / (gamma^2 log(1 + exp(B_Phi)))).
    """
    _, x = _radius(instance)
    (T, d), R = instance["X"].shape[-2:], instance["R"]
    smooth = deora2023_beta_2(T, d, R, x, heads(instance), "sharp")
    smooth = jnp.maximum(smooth, deora2023_beta_1(T, R, x, "sharp") ** 2)
    start = 4 * B_PHI**2 / (instance["margin"] ** 2 * jnp.logaddexp(0.0, B_PHI))
    return jnp.minimum(jnp.minimum(1 / smooth, start), 1)


GOOD = (
    Assumption(
        "the margin in the tangent features is certified and positive",
        lambda i: i["certified"] & (i["margin"] > 0),
    ),
)
COROLLARY_2 = (
    *GOOD,
    Assumption(
        "sqrt(H) is at least 72 beta_3 (sqrt(2) g_0(1/K))^2", lambda i: heads(i) >= heads_needed(i)
    ),
    # Computed twice in another order: a few roundings apart.
    Assumption(
        "the step size satisfies Corollary 2", lambda i: i["eta"] <= step_allowed(i) * (1 + 1e-12)
    ),
    Assumption("R is at least 1", lambda i: i["R"] >= 1),
)


def _size(instance: Instance, faster: Array) -> dict[str, Array]:
    copies = jnp.ceil(instance["spare"] * heads_needed(instance) / instance["U"].shape[0]) + 1
    whole = {**instance, "copies": copies}
    target = target_of(whole, 1 / instance["K"], copies)
    eta = instance["part"] * step_allowed(whole)
    return {**whole, "U_target": target[0], "W_target": target[1], "eta": faster * eta}


_size_all = jax.jit(jax.vmap(_size, in_axes=(0, None)))


@cache
def _good(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = count + count // 4
    R = rng.uniform(1, 1.5, drawn)
    X, y = _samples(rng, drawn, ATOMS)
    U, W = _starts(rng, drawn, R)
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
    return batch


@cache
def _trained(seed: tuple[int, ...], count: int, faster: float) -> Instance:
    batch = {name: jnp.asarray(value) for name, value in _good(seed, count).items()}
    return train_on_all_sets(_size_all(batch, jnp.asarray(faster)))


def good_initialisations(key: PRNGKeyArray, count: int) -> Instance:
    """Starts that satisfy Definition 1, three samples.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with X, y, R, U, W, star_U, star_W (for one copy), margin, margin_above, certified,
        epsilon, K.
    """
    seed = seed_of(key)
    return {name: jnp.asarray(value) for name, value in _good(seed, count).items()}


def good_trainings(key: PRNGKeyArray, count: int, faster: float = 1.0) -> Instance:
    """The same, trained inside the conditions of Corollary 2 on all training sets of its atoms.

    Args:
        key: random key.
        count: instances.
        faster: factor on the step size; above 1 the conditions fail, for controls.

    Returns:
        The batch of `good_initialisations` with copies, eta, the target of risk 1/K, and what
        `train_on_all_sets` adds.
    """
    seed = seed_of(key)
    return _trained(seed, count, faster)
