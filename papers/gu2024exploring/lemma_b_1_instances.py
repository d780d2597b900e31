r"""Pairs of near-by weights, and the quantities that Lemma B.1 bounds.

Symbols: logits <w_r, x_i> with |.| <= B, alpha_i the sums of their exponentials, S_i the softmax;
`moved` and `_moved` mark the same for W_tilde, within R of W. z has ||z||_inf <= 1. There are d = 1
to 5 dimensions and m = 2, 6 or 64 units: arrays have 5 and 64, inputs zeros beyond d, and units
beyond m repeat the first ones without weight.
"""

import numpy as np

from gu2024exploring.instances import networks, perturb

_D, _M, _N = 5, 64, 3
_WIDTHS = np.array([2, 6, _M])


def perturbed_networks(rng, count, largest=0.01):
    """Networks of one output, moved by R at most, which is 0.01 to 1 times the largest; and z.

    Of four instances one has a single logit at B and all others at -B, moved apart, and one has all
    logits at B or -B, moved together: there the parts are tightest.
    """
    batch = networks(rng, count, (_D, _M, 1, _N))
    lengths = np.linalg.norm(batch["X"], axis=2, keepdims=True)
    lengths[1::2, 0] = 1
    batch["X"] = batch["X"] * (np.arange(_D) < rng.integers(1, _D + 1, (count, 1, 1)))
    batch["X"] *= lengths / np.linalg.norm(batch["X"], axis=2, keepdims=True)
    batch["W"] = np.clip(batch["W"], -10, 10)
    batch = perturb(rng, batch, (largest / 100, largest))
    x, kind = batch["X"][1::2, 0], np.arange(count)[1::2, None] // 2 % 2
    apart = np.where((np.arange(_M) == 0) | (kind > 0), 1.0, -1.0)
    size = np.maximum(1, rng.uniform(-1, 3, (len(x), 1)))
    side = size * rng.choice([-1.0, 1.0], (len(x), 1)) ** kind * apart
    batch["W"][1::2] = x[:, :, None] * side[:, None, :]
    step = x[:, :, None] * (batch["R"][1::2, None] * apart)[:, None, :]
    batch["W_tilde"][1::2] = batch["W"][1::2] + step
    m = _WIDTHS[rng.integers(len(_WIDTHS), size=count)]
    units = np.arange(_M)[None] % m[:, None]
    for name in ("W", "W_tilde"):
        batch[name] = np.take_along_axis(batch[name], units[:, None, :], axis=2)
    counted = np.arange(_M)[None] < m[:, None]
    instance = {name: batch[name] for name in ("X", "W", "W_tilde", "R")}
    return instance | {"m": m.astype(float), "z": counted * rng.uniform(-1, 1, (count, _M))}


def pairs(rng, count, largest=0.01):
    """Perturbed networks; in every second instance z is the sign of the change of S_0.

    Logits, sums and softmax are NumPy's, so that the many small programs stay small.
    """
    batch = perturbed_networks(rng, count, largest)
    counted = np.arange(_M)[None] < batch["m"][:, None]
    for end, weights, logits in (("", "W", "logits"), ("_moved", "W_tilde", "moved")):
        batch[logits] = batch["X"] @ batch[weights]
        units = np.exp(batch[logits])
        batch[f"alpha{end}"] = (units * counted[:, None, :]).sum(axis=2)
        batch[f"S{end}"] = units / batch[f"alpha{end}"][:, :, None]
    batch["B"] = np.maximum(np.abs(batch["logits"]).max(axis=(1, 2)), 1)
    # A rounding of a logit of this size is magnified by an exponential.
    terms = np.abs(batch["X"]) @ np.abs(batch["W"])
    batch["rounding"] = 1 + batch["R"] + terms.max(axis=(1, 2))
    change = counted * np.sign(batch["S_moved"] - batch["S"])[:, 0]
    batch["z"][::2] = change[::2]
    batch["z"][1::4] = change[1::4]
    return batch
