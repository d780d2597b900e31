r"""Pairs of near-by weights and everything Lemma B.1 says of them.

Symbols: logits <w_r, x_i> with |.| <= B, alpha_i the sums of their exponentials, S_i the softmax;
`moved` and `_moved` mark the same for W_tilde, within R of W. z has ||z||_inf <= 1.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.gu2024exploring.instances import SIZES, as_arrays, networks, perturb
from attlas.core.generator import generator
from attlas.core.old_claim import Instance


class Pair(NamedTuple):
    """What the parts speak of: n x m arrays, but alpha has n entries."""

    B: Array
    R: Array
    m: int
    logits: Array
    moved: Array
    alpha: Array
    alpha_moved: Array
    S: Array
    S_moved: Array
    rounding: Array


def pair(instance: Instance) -> Pair:
    """The drawn quantities of an instance by attribute.

    Args:
        instance: of `drawn_pairs`.

    Returns:
        All fields.
    """
    parts = {name: instance[name] for name in Pair._fields if name != "m"}
    return Pair(m=instance["S"].shape[1], **parts)


def _softmax(logits: np.ndarray) -> np.ndarray:
    units = np.exp(logits - logits.max(axis=2, keepdims=True))
    return units / units.sum(axis=2, keepdims=True)


def perturbed_networks(
    key: PRNGKeyArray, count: int, largest: float = 0.01
) -> dict[str, np.ndarray]:
    """Networks of one output with weights moved by R at most, and a vector z.

    Args:
        key: random key.
        count: instances.
        largest: R is between a hundredth of it and itself.

    Returns:
        Arrays W, W_tilde, R, a, X, Y, z with a leading axis of `count`.
    """
    rng = generator(key)
    batch = networks(rng, count, (SIZES[0], SIZES[1], 1, SIZES[3]))
    perturb(rng, batch, (largest / 100, largest))
    batch["z"] = rng.uniform(-1, 1, (count, SIZES[1]))
    return batch


def drawn_pairs(key: PRNGKeyArray, count: int, largest: float = 0.01) -> Instance:
    """Perturbed networks; in every second instance z is the sign of the change of S_0.

    Logits, sums and softmax are NumPy's, so that the many small programs stay small.

    Args:
        key: random key.
        count: instances.
        largest: largest R.

    Returns:
        Batch with the fields of `Pair`, X, W, W_tilde and z.
    """
    batch = perturbed_networks(key, count, largest)
    for end in ("", "_moved"):
        logits = batch["X"] @ batch["W_tilde" if end else "W"]
        batch["moved" if end else "logits"] = logits
        batch[f"alpha{end}"] = np.exp(logits).sum(axis=2)
        batch[f"S{end}"] = _softmax(logits)
    batch["B"] = np.maximum(np.abs(batch["logits"]).max(axis=(1, 2)), 1)
    # A rounding of a logit of this size is magnified by an exponential.
    terms = np.abs(batch["X"]) @ np.abs(batch["W"])
    batch["rounding"] = 1 + batch["R"] + terms.max(axis=(1, 2))
    batch["z"][::2] = np.sign(batch["S_moved"] - batch["S"])[::2, 0]
    return as_arrays(batch)
