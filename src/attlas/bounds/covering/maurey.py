r"""Maurey's sparsification (Lemma 3.1 of trauger2023sequence) as an algorithm.

f = sum_i alpha_i V_i with alpha >= 0, gamma = sum alpha_i <= 1, ||V_i|| <= b. As printed the lemma
is false for gamma < 1: V = b, alpha = 1/2 and k = 1 leave an error b^2 / 4 above 0. Two corrected
forms: sum k_i <= k with the 0 as a further atom ("corrected"), or sum k_i = k with the scale
gamma / k ("sharp", with the printed bound).

V has one atom per row, alpha the coefficients, and k is the number of terms.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.bounds.covering.dudley import Number
from attlas.core.errors import UserError

MOST_TERMS = 10**6


@closed_form
def maurey_bound(
    gamma: Number, b: Number, norm: Number, k: int, *, constants: Constants = "sharp"
) -> Float[Array, ""]:
    r"""The bound on the squared error of the best k-sparse average.

    $$\frac{\gamma^2b^2-\|f\|^2}k\ \text{(printed; right for the scale}\ \gamma/k),\qquad
    \frac{\gamma b^2-\|f\|^2}k\ \text{(corrected)}$$

    Here ||f|| is `norm`.

    Args:
        gamma: sum of the coefficients, at most 1.
        b: largest norm of an atom.
        constants: "printed" and "sharp" have the same value.

    Source: Lemma 3.1 of trauger2023sequence (found); corrected (derived).

    Examples:
        >>> [float(maurey_bound(0.5, 1.0, 0.5, 1, constants=c)) for c in ("corrected", "sharp")]
        [0.25, 0.0]
    """
    require_constants(constants)
    weight = jnp.asarray(gamma) if constants == "corrected" else jnp.asarray(gamma) ** 2
    return (weight * jnp.asarray(b) ** 2 - jnp.asarray(norm) ** 2) / k


def _atoms(
    alpha: Float[np.ndarray, " n"], V: Float[np.ndarray, "n d"], constants: Constants
) -> tuple[Float[np.ndarray, " a"], Float[np.ndarray, "a d"]]:
    """Probabilities and atoms whose mean is f; the last atom of "corrected" is 0."""
    require_constants(constants, "corrected", "sharp")
    gamma = float(alpha.sum())
    if not (np.all(alpha >= 0) and 0 < gamma <= 1 + 1e-12):
        raise UserError(f"coefficients sum to {gamma}: they must be >= 0 with a sum in (0, 1]")
    if constants == "sharp":
        return alpha / gamma, gamma * V
    return np.append(alpha, max(0.0, 1 - gamma)), np.vstack([V, np.zeros((1, V.shape[1]))])


@closed_form
def maurey_sample(
    key: PRNGKeyArray,
    alpha: Float[np.ndarray, " n"],
    V: Float[np.ndarray, "n d"],
    k: int,
    *,
    constants: Constants = "sharp",
) -> tuple[Float[np.ndarray, " d"], Int[np.ndarray, " n"]]:
    """A random k-sparse average whose expected squared error is at most the bound.

    Args:
        constants: "sharp" for averages of scale gamma / k, "corrected" for 1 / k.

    Returns:
        The average and the counts k_i.

    Source: proof of Lemma 3.1 of trauger2023sequence.

    Examples:
        >>> import jax
        >>> average, counts = maurey_sample(jax.random.key(0), np.array([1.0]), np.eye(1), 3)
        >>> average.tolist(), counts.tolist()
        ([1.0], [3])
    """
    law, atoms = _atoms(alpha, V, constants)
    counts = generator(key).multinomial(k, law / law.sum())
    return counts @ atoms / k, counts[: len(alpha)]


@closed_form
def maurey_sparsify(
    alpha: Float[np.ndarray, " n"],
    V: Float[np.ndarray, "n d"],
    k: int,
    *,
    constants: Constants = "sharp",
) -> tuple[Float[np.ndarray, " d"], Int[np.ndarray, " n"]]:
    r"""A k-sparse average that meets the bound, without chance (conditional expectations).

    Term t + 1 is the atom that brings the sum S closest to (t + 1) f; the mean over the atoms of
    ||S + V - (t+1) f||^2 is ||S - t f||^2 plus the variance, so that the least is no larger.

    Args:
        constants: "sharp" for averages of scale gamma / k, "corrected" for 1 / k.

    Returns:
        The average and the counts k_i.

    Raises:
        UserError: for more than 10^6 terms: each is one step.

    Source: derived from Lemma 3.1 of trauger2023sequence.

    Examples:
        >>> average, counts = maurey_sparsify(np.array([0.5, 0.5]), np.eye(2), 2)
        >>> average.tolist(), counts.tolist()
        ([0.5, 0.5], [1, 1])
    """
    if k > MOST_TERMS:
        raise UserError(f"k = {k} terms, each a step: give at most {MOST_TERMS:g}")
    _, atoms = _atoms(alpha, V, constants)
    target = alpha @ V
    total, counts = np.zeros(V.shape[1]), np.zeros(len(atoms), int)
    for term in range(1, k + 1):
        ahead = total[None, :] + atoms - term * target[None, :]
        best = int(np.argmin(np.sum(ahead**2, axis=1)))
        total, counts[best] = total + atoms[best], counts[best] + 1
    return total / k, counts[: len(alpha)]
