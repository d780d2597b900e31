r"""Pairs of near-by weights, and the quantities that Lemma B.1 bounds.

Symbols: logits <w_r, x_i> with |.| <= B, alpha_i the sums of their exponentials, S_i the softmax;
`moved` and `_moved` mark the same for W_tilde, within R of W. z has ||z||_inf <= 1.
"""

import numpy as np

from attlas.claims.gu2024exploring.instances import SIZES, networks, perturb


def _softmax(logits):
    units = np.exp(logits - logits.max(axis=2, keepdims=True))
    return units / units.sum(axis=2, keepdims=True)


def perturbed_networks(rng, count, largest=0.01):
    """Networks of one output, moved by R at most, which is .01 to 1 times the largest; and z."""
    batch = networks(rng, count, (SIZES[0], SIZES[1], 1, SIZES[3]))
    batch = perturb(rng, batch, (largest / 100, largest))
    return batch | {"z": rng.uniform(-1, 1, (count, SIZES[1]))}


def pairs(rng, count, largest=0.01):
    """Perturbed networks; in every second instance z is the sign of the change of S_0.

    Logits, sums and softmax are NumPy's, so that the many small programs stay small.
    """
    batch = perturbed_networks(rng, count, largest)
    for end, weights, logits in (("", "W", "logits"), ("_moved", "W_tilde", "moved")):
        batch[logits] = batch["X"] @ batch[weights]
        batch[f"alpha{end}"] = np.exp(batch[logits]).sum(axis=2)
        batch[f"S{end}"] = _softmax(batch[logits])
    batch["B"] = np.maximum(np.abs(batch["logits"]).max(axis=(1, 2)), 1)
    # A rounding of a logit of this size is magnified by an exponential.
    terms = np.abs(batch["X"]) @ np.abs(batch["W"])
    batch["rounding"] = 1 + batch["R"] + terms.max(axis=(1, 2))
    batch["z"][::2] = np.sign(batch["S_moved"] - batch["S"])[::2, 0]
    return batch
