r"""The canonical form of a Transformer's layer, whatever library its weights come from.

Inputs multiply from the left: a hidden state is a row x, a projection is x W + b. Head h reads
queries x W_Q[h] + b_Q[h], keys and values of its group g = group[h]; its logits are

    scale <R_i (x_i W_Q[h] + b_Q[h]), R_j (x_j W_K[g] + b_K[g])>

with R the rotation of a rotary position, or none; a soft cap c makes it c tanh(logit / c). The
layer's attention is sum_h P_h (X W_V[g] + b_V[g]) W_O[h] + b_O. Only W_Q W_K' and W_V W_O are
properties of a head: the factors may be rescaled against each other.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

NormPlacement = str
"""Where a layer's norms stand: "pre-norm" (x + f(norm x)), "post-norm" (norm(x + f x)), or
"parallel" (x + attention(norm x) + feedforward(second norm x))."""


class Norm(eqx.Module):
    r"""LayerNorm (centred) or RMSNorm, gain * (x - mean) / sqrt(variance + eps) + bias.

    Attributes:
        gain: elementwise factor.
        bias: elementwise shift; zeros where the model has none.
        eps: added to the variance.
        centred: whether the mean is subtracted: LayerNorm, else RMSNorm.
    """

    gain: Float[Array, " d"]
    bias: Float[Array, " d"]
    eps: float = eqx.field(static=True)
    centred: bool = eqx.field(static=True)

    def __call__(self, x: Float[Array, "*lead d"]) -> Float[Array, "*lead d"]:
        """The normalised hidden states."""
        gain, bias = jnp.broadcast_to(self.gain, x.shape), jnp.broadcast_to(self.bias, x.shape)
        return gain * self.without_gain(x) + bias

    def without_gain(self, x: Float[Array, "*lead d"]) -> Float[Array, "*lead d"]:
        """The hidden states before gain and bias, of Euclidean norm at most sqrt(d)."""
        if self.centred:
            x = x - jnp.mean(x, axis=-1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + self.eps)


class Rotary(eqx.Module):
    """Rotary positions: pairs of coordinates turn by position times frequency.

    Attributes:
        frequencies: angle per position of each pair, in float64 whatever the weights are, since
            they are computed and not read; coordinates beyond the pairs do not turn.
        interleaved: pairs are (0, 1), (2, 3), ...; else (0, r), (1, r + 1), ... with r pairs.
    """

    frequencies: Float[Array | np.ndarray, " pairs"]
    interleaved: bool = eqx.field(static=True)


class Attention(eqx.Module):
    """The heads of one layer.

    Attributes:
        W_Q: query projection of each head.
        b_Q: its bias; zeros where the model has none, as for all biases.
        W_K: key projection of each key/value group.
        b_K: its bias.
        W_V: value projection of each group.
        b_V: its bias.
        W_O: output projection of each head.
        b_O: bias of their sum.
        group: key/value group of each head.
        scale: factor of the logits.
        causal: whether token i sees tokens j <= i only.
        window: token i sees tokens j with |i - j| < window only; None for all.
        rotary: rotary positions, or None.
        query_norm: norm of each head's queries and keys before the rotation, or None.
        key_norm: the same of the keys.
        softcap: c of the logits c tanh(logits / c), or None.
        relative: what positions add to the logits, see `relative_logits`; or None.
    """

    W_Q: Float[Array, "H d k"]
    b_Q: Float[Array, "H k"]
    W_K: Float[Array, "G d k"]
    b_K: Float[Array, "G k"]
    W_V: Float[Array, "G d v"]
    b_V: Float[Array, "G v"]
    W_O: Float[Array, "H v out"]
    b_O: Float[Array, " out"]
    group: tuple[int, ...] = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    causal: bool = eqx.field(static=True)
    window: int | None = eqx.field(static=True, default=None)
    rotary: Rotary | None = None
    query_norm: Norm | None = None
    key_norm: Norm | None = None
    softcap: float | None = eqx.field(static=True, default=None)
    relative: Float[Array, "H offsets"] | None = None


class Dense(eqx.Module):
    """x W + b.

    Attributes:
        W: weights, inputs first.
        b: bias; zeros where the model has none.
    """

    W: Float[Array, "d m"]
    b: Float[Array, " m"]

    def __call__(self, x: Float[Array, "*lead d"]) -> Float[Array, "*lead m"]:
        """Each row x mapped to x W + b."""
        outputs = x @ self.W
        return outputs + jnp.broadcast_to(self.b, outputs.shape)


class Feedforward(eqx.Module):
    """activation(inner x) outwards, or activation(gate x) * (inner x) outwards.

    Attributes:
        inner: into the hidden units.
        outer: out of them.
        gate: of gated units, or None.
        activation: a name of `attlas.transformers.activations`.
    """

    inner: Dense
    outer: Dense
    gate: Dense | None
    activation: str = eqx.field(static=True)


class Experts(eqx.Module):
    """Gated units of which a router chooses some for each token, averaged by its softmax.

    Attributes:
        router: a logit per expert.
        inner: into the hidden units of each expert, likewise gate.
        outer: out of them.
        shared: units that every token passes, or None.
        shared_gate: logit of the factor of the shared units, or None for a factor of 1.
        active: number of experts that a token uses.
        normalized: whether the weights of the active ones are divided by their sum.
        activation: a name of `attlas.transformers.activations`.
    """

    router: Dense
    inner: Float[Array, "E d m"]
    gate: Float[Array, "E d m"]
    outer: Float[Array, "E m d"]
    shared: Feedforward | None
    shared_gate: Dense | None
    active: int = eqx.field(static=True)
    normalized: bool = eqx.field(static=True)
    activation: str = eqx.field(static=True)


class Layer(eqx.Module):
    """One layer: attention, feedforward, and where their norms stand.

    Attributes:
        attention_norm: norm of the attention's input (pre-norm, parallel) or of its residual sum
            (post-norm); None where a pre-norm layer has none.
        feedforward: the units between layers.
        feedforward_norm: the same of the feedforward.
        norm_placement: see `NormPlacement`.
        attention_out_norm: norm of what the attention adds, or None.
        feedforward_out_norm: the same of the feedforward.
    """

    attention: Attention
    attention_norm: Norm | None
    feedforward: Feedforward | Experts
    feedforward_norm: Norm | None
    norm_placement: NormPlacement = eqx.field(static=True)
    attention_out_norm: Norm | None = None
    feedforward_out_norm: Norm | None = None


class AttentionBlock(eqx.Module):
    """A `Layer` without its feedforward units, most of its numbers: what level weights reads."""

    attention: Attention
    attention_norm: Norm | None
    feedforward_norm: Norm | None
    norm_placement: NormPlacement = eqx.field(static=True)
    attention_out_norm: Norm | None = None
    feedforward_out_norm: Norm | None = None

    def completed(self, feedforward: Feedforward | Experts) -> Layer:
        """The layer with its feedforward units."""
        return Layer(
            self.attention,
            self.attention_norm,
            feedforward,
            self.feedforward_norm,
            self.norm_placement,
            self.attention_out_norm,
            self.feedforward_out_norm,
        )


class Embedding(eqx.Module):
    """Tokens to hidden states: norm(scale tokens + positions + type), then a projection.

    Attributes:
        tokens: one row per token of the vocabulary.
        positions: one row per position, from `first_position` on, or None.
        kind: row of the first type of token (segment), or None.
        norm: or None.
        projection: from the embedding's width to the model's, or None.
        scale: factor of a token's row.
        first_position: row of `positions` that the first token reads.
        padding: token that the count of positions passes over, and that reads the row before
            `first_position`; None where every token counts.
    """

    tokens: Float[Array, "V e"]
    positions: Float[Array, "n e"] | None = None
    kind: Float[Array, " e"] | None = None
    norm: Norm | None = None
    projection: Dense | None = None
    scale: float = eqx.field(static=True, default=1.0)
    first_position: int = eqx.field(static=True, default=0)
    padding: int | None = eqx.field(static=True, default=None)


class PatchEmbedding(eqx.Module):
    """Images to hidden states: a class token, then a linear map of each patch; positions are added.

    Attributes:
        patches: from the pixels of a patch, channel first, row by row.
        positions: one row per token.
        size: side of a patch in pixels.
        grid: rows and columns of patches; None for as many rows as columns.
    """

    patches: Dense
    token: Float[Array, " d"]
    positions: Float[Array, "n d"]
    size: int = eqx.field(static=True)
    grid: tuple[int, int] | None = eqx.field(static=True, default=None)


class Readout(eqx.Module):
    """Last hidden states to logits: lm_head(transform_norm(activation(transform(norm x)))).

    Attributes:
        norm: norm of the last hidden states, or None.
        transform: a dense map before the LM head, or None.
        activation: activation after the transform.
        transform_norm: norm after the activation, or None.
        lm_head: map to the logits of tokens, or of classes; None for a model without a task.
        first_only: whether only the first token is read, to classify.
        softcap: c of the logits c tanh(logits / c), or None.
    """

    norm: Norm | None = None
    transform: Dense | None = None
    transform_norm: Norm | None = None
    lm_head: Dense | None = None
    activation: str = eqx.field(static=True, default="gelu")
    first_only: bool = eqx.field(static=True, default=False)
    softcap: float | None = eqx.field(static=True, default=None)
