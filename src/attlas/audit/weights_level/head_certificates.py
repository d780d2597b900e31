r"""Certificates of heads that hold for every text: from the weights alone, through the norm."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.quantity import EvidenceLevel, Quantity
from attlas.bounds.attention.ball_lipschitz import ball_lipschitz
from attlas.bounds.attention.entropy_floor import range_entropy_floor
from attlas.bounds.attention.largest_logit import largest_logit
from attlas.bounds.attention.product_norms import bias_norms, product_norms
from attlas.bounds.attention.rotary_core_norm import rotary_core_norm
from attlas.norms.matrix import spectral_norm
from attlas.transformers.canonical import Attention, Norm

_PROVED = EvidenceLevel.PROVED

# One program each: operation by operation they would be compiled one by one.
_biases, _floor = jax.jit(bias_norms), jax.jit(range_entropy_floor)

# Work per head, n k^3, up to which every offset of a rotary position is enumerated: about 4 s on a
# core, for heads of size 128 texts of 9536 tokens.
_ENUMERATED = 2 * 10**10

CERTIFICATES = (
    Quantity(
        "radius",
        "certified length of a normalised token",
        r"$R=\sqrt d$",
        "the norm before the attention keeps every token in this ball, whatever the text; gain and "
        "bias belong to the weights",
        _PROVED,
    ),
    Quantity(
        "core_bound",
        "certified norm of the query-key product, over all relative positions",
        r"$\max_m\|W_QR_mW_K'\|/\sqrt k$",
        "what a logit grows by, per squared length of a token",
        _PROVED,
    ),
    Quantity(
        "logit_bound",
        "certified largest logit",
        r"$R^2\|A\|+R|a|+R|c|+|e|$",
        "no text reaches a larger one; training often clips logits at 100",
        _PROVED,
        follow=True,
    ),
    Quantity(
        "entropy_bound",
        "certified least entropy of a row of n tokens",
        r"$\min H(\mathrm{softmax}\ z),\ |z_j-z_l|\le2R(\|A\|R+|a|)$",
        "in nats; 0 where the weights do not exclude that a row attends to one token",
        _PROVED,
    ),
    Quantity(
        "lipschitz_bound",
        "certified Lipschitz constant of the head, for n normalised tokens",
        r"$\|V\|[\sqrt n(1+\tfrac4{3\sqrt3}R(\|A\|R+|a|))+R(\|A\|R+|c|)]$",
        "how much the head's output can change per change of its input, anywhere",
        _PROVED,
        column="certified Lipschitz",
        follow=True,
    ),
)


LAYER_CERTIFICATE = Quantity(
    "layer_lipschitz_bound",
    "certified Lipschitz constant of the attention of the head's layer, for n normalised tokens",
    r"$\sum_h\mathrm{Lip}_h$",
    "how much the sum of all heads of the layer can change per change of its input, anywhere; "
    "the residual connection adds its own 1",
    _PROVED,
)


def head_certificates(
    folded: Attention, norm: Norm | None, context: int, radius: float | None = None
) -> dict[str, Float[np.ndarray, " H"]]:
    r"""Bounds that hold for every sequence of at most `context` tokens.

    Args:
        folded: heads that read the normalised token, `folded_attention`, in float64.
        norm: the norm; without one no ball holds every token, and the bounds are infinite.
        radius: radius of the ball; that of the norm when None.

    Returns:
        Values of `CERTIFICATES`, one per head. A norm of queries and keys bounds the logits by its
        gains, and a soft cap by itself; the head then has no bound on its Lipschitz constant here.
    """
    heads = len(folded.group)
    infinite = np.full(heads, np.inf)
    if norm is not None and radius is None:
        radius = float(np.sqrt(norm.gain.size)) * (1 + 1e-15)
    if radius is None:
        none = dict.fromkeys(("radius", "core_bound", "logit_bound"), infinite)
        return {**none, "entropy_bound": np.zeros(heads), "lipschitz_bound": infinite}
    with jax.enable_x64(True):
        if folded.query_norm is not None or folded.key_norm is not None:
            largest = _normalised_logit(folded)
            spread, core, lipschitz = largest, np.nan, infinite
        else:
            sizes = _sizes(folded, context)
            core, value, by_key, by_query, constant = sizes
            largest = largest_logit(core, radius, by_key, by_query, constant)
            # without rotation a row's own part shifts all its logits alike
            query_part = by_query if folded.rotary is not None else 0.0
            spread = largest_logit(core, radius, by_key, query_part)
            lipschitz = ball_lipschitz(value, core, radius, context, by_key, query_part)
        if folded.softcap is not None:
            # the cap brings no two logits further apart than they are
            largest, spread = (jnp.minimum(each, folded.softcap) for each in (largest, spread))
            lipschitz = infinite
        if folded.relative is not None:
            added = jnp.asarray(folded.relative, jnp.float64)
            ends = jnp.min(added, axis=1), jnp.max(added, axis=1)
            largest = (largest + jnp.max(jnp.abs(added), axis=1)) * (1 + 1e-15)
            spread = (spread + (ends[1] - ends[0]) / 2) * (1 + 1e-15)
        floor = _floor(spread, context)
    values = {
        "radius": radius,
        "core_bound": core,
        "logit_bound": largest,
        "entropy_bound": floor,
        "lipschitz_bound": lipschitz,
    }
    return {name: np.array(np.broadcast_to(value, (heads,))) for name, value in values.items()}


def enumerates_offsets(attention: Attention, context: int) -> bool:
    r"""Whether the certificates see every relative position, or the product of two norms.

    Returns:
        False where positions rotate and n k^3 is so large that ||W_Q|| ||W_K|| stands for the
        largest norm over offsets; it is never smaller. Normalised queries or keys need no product.
    """
    if attention.query_norm is not None or attention.key_norm is not None:
        return True
    return attention.rotary is None or context * attention.W_Q.shape[-1] ** 3 <= _ENUMERATED


def _sizes(folded: Attention, context: int) -> tuple[Array, ...]:
    """Upper values of ||A||, ||V||, |a|, |c| and |e| of each head."""
    group = jnp.array(folded.group)
    s, W_Q, W_K = folded.scale, folded.W_Q, folded.W_K[group]
    b_Q, b_K = folded.b_Q, folded.b_K[group]
    value = product_norms(folded.W_V[group], jnp.swapaxes(folded.W_O, -1, -2))
    constant = _biases(b_Q[:, None, :], b_K)
    if folded.rotary is None:
        core = product_norms(W_Q, W_K)
        by_key, by_query = _biases(W_K, b_Q), _biases(W_Q, b_K)
    else:
        queries, keys = spectral_norm(W_Q, upper=True), spectral_norm(W_K, upper=True)
        frequencies = jnp.asarray(folded.rotary.frequencies, W_Q.dtype)
        if enumerates_offsets(folded, context):
            core = rotary_core_norm(
                W_Q, W_K, frequencies, context, folded.rotary.interleaved, folded.causal
            )
        else:
            core = queries * keys
        by_key = keys * jnp.linalg.norm(b_Q, axis=-1)
        by_query = queries * jnp.linalg.norm(b_K, axis=-1)
        constant = jnp.linalg.norm(b_Q, axis=-1) * jnp.linalg.norm(b_K, axis=-1)
    # products with the scale are off by one rounding
    raised = s * (1 + 4 * float(jnp.finfo(W_Q.dtype).eps))
    return raised * core, value, raised * by_key, raised * by_query, raised * constant


def _normalised_logit(folded: Attention) -> Array:
    """Largest logit of queries and keys that are normalised themselves."""
    k = folded.W_Q.shape[-1]
    sides = []
    for norm in (folded.query_norm, folded.key_norm):
        if norm is None:
            return jnp.asarray(jnp.inf)
        sides.append(k**0.5 * jnp.max(jnp.abs(norm.gain)) + jnp.linalg.norm(norm.bias))
    return folded.scale * sides[0] * sides[1] * (1 + 1e-14)
