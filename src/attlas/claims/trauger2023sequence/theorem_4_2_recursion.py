r"""Theorem 4.2: the unrolled recursion of errors, on networks whose weights are moved.

The right side has the resolutions measured on what the hatted network sees, as a cover at these
points would grant them; the recursion is the same for every cover, ours or that of Edelman et al.
"""

from functools import partial

import jax.numpy as jnp

from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.bounds.generalisation.trauger2023_masked import (
    CROSS_ENTROPY_LIPSCHITZ,
    clipped_cross_entropy,
    trauger2023_masked_parts,
)
from attlas.claims.trauger2023sequence.deep_instances import (
    KINDS,
    magnitude,
    networks,
    norms,
    one_head,
)
from attlas.claims.trauger2023sequence.layer_instances import ROUNDINGS, longest
from attlas.core.claim import Control, Sides, Source, Status
from attlas.core.statement import inequality

_CEILING = 3.0


def _parts(pair, size, readout, constants):
    """The costs at given spectral norms by kind and norm of the readout."""
    c, v, qk = (size[name] for name in KINDS)
    B_x = longest(pair["X"])
    return trauger2023_parts(c, v, qk, readout, B_x, pair["lipschitz"], constants=constants)


def _own_parts(pair):
    """The costs with 1 for the softmax, at the norms of the unhatted network."""
    return _parts(pair, norms(pair), longest(pair["readout"]), "sharp")


def _equal_parts(pair):
    """The printed costs, at the largest norms of both networks and of all layers."""
    size, hats = norms(pair), norms(pair, "_hat")
    size = {n: jnp.full_like(s, jnp.maximum(s.max(), hats[n].max())) for n, s in size.items()}
    readout = jnp.maximum(longest(pair["readout"]), longest(pair["readout_hat"]))
    return _parts(pair, size, readout, "corrected")


def _total(parts, resolutions, skip="", flat=False):
    """Sum of cost times resolution; `flat` sets alpha_1 to 1."""
    beta = jnp.stack([part.beta for part in parts])
    if flat:
        # the first layer's W_c costs alpha_1 B_w, the last one's B_w
        ratio = parts[-3].beta / jnp.where(parts[1].beta > 0, parts[1].beta, 1.0)
        beta = jnp.where(jnp.asarray([part.layer == 1 for part in parts]), ratio * beta, beta)
    kept = jnp.asarray([float(part.kind != skip) for part in parts])
    return jnp.sum(kept * beta * resolutions)


_FLAT = Control(r"$\alpha_1 = 1$", flat=True)
on_networks = partial(inequality, sample=networks, roundings=2 * ROUNDINGS)


@inequality(
    r"Proof of Theorem 4.2, the unrolled recursion, $B_x, L_\sigma \le 1$",
    Source.FOUND,
    sample=partial(networks, longer=False),
    roundings=2 * ROUNDINGS,
    controls=[_FLAT, Control("without the errors of $W_v$", skip="value")],
)
def theorem_4_2_recursion(moved_single, resolutions_single, *, skip="", flat=False, **pair):
    r"""$$|g(X;W,w) - g(X;\hat W,\hat w)| \le \epsilon_w + B_w \sum_{i=1}^L \alpha_i
    \big( \epsilon_c^{(i)} + L_\sigma B_c \epsilon_v^{(i)}
    + 2 L_\sigma B_c B_v \epsilon_{QK}^{(i)} \big), \quad
    \alpha_i = \prod_{j>i} L_\sigma B_c B_v (1+4B_{QK})$$

    Two layers of one head with the same bounds for both, as printed. The recursion is right; what
    Theorem 4.2 makes of it is not (theorem-4-2-printed).
    """
    right = _total(_equal_parts(one_head(pair)), resolutions_single, skip, flat)
    return Sides(moved_single, right, magnitude=magnitude(pair))


@on_networks(
    "Proof of Theorem 4.2, corrected and with 1 for the softmax, $H$ heads",
    status=Status.SHARPENED,
    controls=[Control(r"$1 + \|W_{QK}\|$ in place of $1 + 2 \|W_{QK}\|$", half=True), _FLAT],
)
def theorem_4_2_recursion_sharp(moved, resolutions, *, half=False, flat=False, **pair):
    r"""$$|\Delta| \le \epsilon_w + B_w \sum_i \alpha_i \sum_h \big( \epsilon_c
    + L_\sigma \|W_c\| \epsilon_v + L_\sigma \|W_c\| \|W_v\| x_i^2 \epsilon_{QK} \big),
    \quad \alpha_i = \prod_{j>i} \sum_h L_\sigma \|W_c\| \|W_v\| (1+2\|W_{QK}\|), \quad
    x_1 = B_x, \ x_i = 1$$

    Two heads, tokens up to 5, $L_\sigma$ up to 3, norms of the unhatted network alone. Close to
    its constants: .79 of the right side is reached where the second layer turns what the first one
    erred. The factor $x_1^2$ has its own claim, lemma-e-2-first-layer.
    """
    parts = _own_parts(pair)
    if half:
        # 1 + ||W_QK|| in place of 1 + 2 ||W_QK|| in the second layer
        size = {name: value[-1] for name, value in norms(pair).items()}
        outer = size["output"] * size["value"]
        both = jnp.sum(outer * (1 + 2 * size["query_key"]))
        ratio = jnp.sum(outer * (1 + size["query_key"])) / both
        parts = [p._replace(beta=p.beta * ratio) if p.layer == 1 else p for p in parts]
    return Sides(moved, _total(parts, resolutions, flat=flat), magnitude=magnitude(pair))


@on_networks(
    "Theorem 5.1, by a cover of the scores",
    status=Status.NEW,
    controls=[_FLAT, Control("1 in place of 2 for cross-entropy", constant=1.0)],
)
def theorem_5_1_recursion(
    scores, scores_hat, resolutions, *, constant=CROSS_ENTROPY_LIPSCHITZ, flat=False, **pair
):
    r"""$$|\ell - \hat\ell| \le 2 \max_s |W_s Y - \hat W_s \hat Y| \le 2 \epsilon_W
    + 2 B_w \sum_i \alpha_i \sum_h \big( \epsilon_c + L_\sigma \|W_c\| \epsilon_v
    + L_\sigma \|W_c\| \|W_v\| x_i^2 \epsilon_{QK} \big), \quad B_w = \max_s \|W_s\|$$

    Four words, clipped at 3. The network below is paid for once: no factor $\sqrt K$ on its part,
    where the contraction of Theorem 5.1 pays it on everything.
    """
    losses = [clipped_cross_entropy(x, 0, _CEILING) for x in (scores, scores_hat)]
    parts = trauger2023_masked_parts(_own_parts(pair))
    right = constant / CROSS_ENTROPY_LIPSCHITZ * _total(parts, resolutions, flat=flat)
    size = magnitude(pair) + _CEILING
    return Sides(jnp.abs(losses[0] - losses[1]), right, magnitude=size)
