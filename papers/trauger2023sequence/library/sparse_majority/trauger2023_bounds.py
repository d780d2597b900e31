r"""A trained sparse-majority model in the class of Theorem 4.1, and every bound on its gap.

A logit of the model of section 6 of trauger2023sequence is

    r'relu(sum_h V_h'X' softmax(X M_h x) + b) + c:

the maps after the ReLU are multiplied out, V_h is values times output of a head and M_h keys times
queries. [CLS] is one token x for all sequences, so that the bias of the queries goes into M_h as a
matrix of rank one and all scores stay; that of the keys does nothing.

The ReLU acts on the sum of the heads. Contraction comes first (a factor 2 for the sign of r), then
complexities of heads add up as in section 4.2, and the numbers b and c, in balls of their own, add
2 ||r||_1 max|b| / sqrt(m) and |c| / sqrt(m). The released loss averages logistic losses of two
logits, each 1-Lipschitz: its complexity is at most the average of theirs, and its range the average
of the bounds on |logit|.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.comparison.transformer_weights import (
    Head,
    cls_row_sum,
    matrix_norms,
    query_key_norms,
)
from attlas.bounds.constants import Constants
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError
from attlas.data.sparse_majority import BitEmbedding
from trauger2023sequence.library.models.majority_attention import MajorityAttention

BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
ROWS: tuple[tuple[str, Constants], ...] = (
    *((ball, "sharp") for ball in BALLS),
    ("log T", "sharp"),
    ("log m", "sharp"),
    ("parameters", "sharp"),
    *((ball, "corrected") for ball in BALLS),
    *((ball, "printed") for ball in BALLS),
)
"""Covers of keys and queries with the constants of Theorem 4.1; the printed ones are not bounds."""


Numbers = Array | np.ndarray


class ReducedMajority(NamedTuple):
    """The logits r'relu(sum_h V_h'X' softmax(X M_h x) + b) + c, one column of r a logit.

    Attributes:
        M: keys and queries of each head, with the bias of the queries.
        V: values and output of each head.
        b: bias inside the ReLU.
        r: dense layer and readout.
        c: bias of the logits.
    """

    M: Float[np.ndarray, "h d d"]
    V: Float[np.ndarray, "h d d"]
    b: Float[np.ndarray, " d"]
    r: Float[np.ndarray, "d l"]
    c: Float[np.ndarray, " l"]


class MajorityNorms(NamedTuple):
    """What the bounds require; runs may be stacked along a leading axis.

    Attributes:
        query_key: five norms of every M_h: ||.||_{1,1}, largest column, sum of rows, that on the
            side of [CLS], and largest singular value.
        value: largest l_1 norm of a column of V_h.
        bias: largest |entry| of b.
        readout: ||r||_1 of each logit.
        constant: |c| of each logit.
        tokens: largest Euclidean norm, l_1 norm and entry of a token.
    """

    query_key: Float[Array | np.ndarray, "*e h 5"]
    value: Float[Array | np.ndarray, "*e h"]
    bias: Float[Array | np.ndarray, "*e"]
    readout: Float[Array | np.ndarray, "*e l"]
    constant: Float[Array | np.ndarray, "*e l"]
    tokens: Float[Array | np.ndarray, "*e 3"]


def reduce_majority(model: MajorityAttention, cls: Float[np.ndarray, " d"]) -> ReducedMajority:
    r"""The same function, on sequences whose last token is this one.

    $$M_h=\tfrac1{\sqrt k}W_K\Big(W_Q^\top+b_Q\frac{x^\top}{x^\top x}\Big),\qquad V_h=W_VW_O$$

    Args:
        model: one model; its arrays are read as NumPy arrays in float64.
        cls: x, the [CLS] token with its position.

    Examples:
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> reduced = reduce_majority(make_majority_attention(jax.random.key(0), 4), np.ones(4))
        >>> reduced.M.shape, reduced.r.shape
        ((2, 4, 4), (4, 2))
    """
    host: MajorityAttention = jax.tree.map(lambda a: np.asarray(a, float), model)
    (query, query_bias), (key, _), (value, value_bias) = host.query, host.key, host.value
    keys, queries = (np.moveaxis(np.asarray(kernel), 1, 0) for kernel in (key, query))
    width = np.sqrt(query.shape[-1])
    # On x the added matrix is b_Q itself.
    added = np.asarray(query_bias)[:, None, :] * (cls / (cls @ cls))[None, :, None]
    M = keys @ np.swapaxes(queries + added, 1, 2) / width
    output, bias = host.output
    V = np.stack([np.asarray(value[:, h]) @ np.asarray(output[h]) for h in range(len(M))])
    b = np.einsum("hk,hke->e", value_bias, output) + bias
    (dense, dense_bias), (last, last_bias) = host.dense, host.readout
    arrays = (M, V, b, dense @ last, dense_bias @ last + last_bias)
    return ReducedMajority(*(np.asarray(part) for part in arrays))


def majority_norms(model: MajorityAttention, embedding: BitEmbedding) -> MajorityNorms:
    r"""Norms of the reduced weights and of all tokens that can occur.

    Returns:
        The norms, upper values up to the rounding of the reduction.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> data = make_sparse_majority(jax.random.key(0), 9, MajorityDesign(dimension=4))
        >>> norms = majority_norms(make_majority_attention(jax.random.key(1), 4), data.embedding)
        >>> norms.query_key.shape, f"{norms.bias:.0f}"
        ((2, 5), '0')
    """
    host = jax.tree.map(lambda a: np.asarray(a, float), embedding)
    places, cls = host.positions[:-1], host.cls + host.positions[-1]
    contents = np.stack([host.zero, host.one])
    tokens = np.concatenate([*(places + content[None] for content in contents), cls[None]])
    reduced = reduce_majority(model, cls)
    query_key = []
    for M in reduced.M:
        # The convention there is x_query' W x_key.
        norms, at_cls = query_key_norms(M.T), cls_row_sum(Head(M.T, M, M))
        query_key.append((norms.total, norms.column, norms.row_sum, at_cls, norms.spectral))
    sizes = np.sqrt((tokens**2).sum(1)).max(), np.abs(tokens).sum(1).max(), np.abs(tokens).max()
    return MajorityNorms(
        query_key=np.array(query_key),
        value=np.array([matrix_norms(V.T).row for V in reduced.V]),
        bias=np.abs(reduced.b).max(keepdims=True)[0],
        readout=np.abs(reduced.r).sum(0),
        constant=np.abs(reduced.c),
        tokens=np.array(sizes),
    )


def majority_ensemble_norms(models: MajorityAttention, embeddings: BitEmbedding) -> MajorityNorms:
    """The norms of each member of an ensemble.

    Args:
        embeddings: embeddings of every member's sequences, stacked.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> data = make_sparse_majorities(keys, 9, MajorityDesign(dimension=4))
        >>> models = [make_majority_attention(key, 4) for key in keys]
        >>> stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *models)
        >>> majority_ensemble_norms(stacked, data.embedding).query_key.shape
        (3, 2, 5)
    """
    host = jax.tree.map(np.asarray, (models, embeddings))
    members = range(len(jax.tree.leaves(host)[0]))
    norms = [majority_norms(*jax.tree.map(lambda a, k=k: a[k], host)) for k in members]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *norms)


def majority_bounds(
    norms: MajorityNorms, m: Float[Array, " s"], bits: int, d: int, delta: float
) -> tuple[Float[Array, "e r s"], Float[Array, " e"]]:
    r"""Every bound on true minus empirical loss, by run, row of `ROWS` and number of samples.

    $$2\,\tfrac12\sum_c\Big(\|r_c\|_1\Big[\sum_hR_h+\frac{2\max|b|}{\sqrt m}\Big]
    +\frac{|c_c|}{\sqrt m}\Big)+3\rho\sqrt{\frac{\ln(2/\delta)}{2m}},\qquad
    \rho=\tfrac12\sum_c\sup|{\rm logit}_c|$$

    with R_h the bound of Theorem 4.1 for head h and a readout of norm 1. The network's part is cut
    at its largest output, but not in the printed rows.

    Args:
        m: numbers of samples.
        bits: T, one less than the tokens of a sequence.

    Returns:
        The bounds, and the ranges rho of the loss, which no gap exceeds.

    Raises:
        UserError: if an m is not above d, as Theorem 4.1 asks.

    Source: Theorem 4.1 and section 4.2 of trauger2023sequence; constants derived.

    Examples:
        >>> one = jnp.ones((1, 1))
        >>> norms = MajorityNorms(jnp.ones((1, 1, 5)) / 9, one, one[0], one, one, jnp.ones((1, 3)))
        >>> bounds, spread = majority_bounds(norms, jnp.array([1e4, 1e6]), 8, 4, 0.05)
        >>> [f"{float(bound):.3f}" for bound in bounds[0, 0]], spread.tolist()
        (['0.478', '0.058'], [3.0])
    """
    if not bool(jnp.all(m > d)):
        raise UserError(f"m = {float(jnp.min(m)):g} samples: Theorem 4.1 requires more than {d}")
    return _bounds(norms, m, jnp.asarray(bits + 1.0, m.dtype), d, delta)


def _head_bounds(
    norms: Numbers, value: Numbers, tokens: Numbers, m: Array, S: Array, d: int
) -> Array:
    """Complexity of one head inside the ReLU by every cover."""
    total, column, row_sum, at_cls, spectral = jnp.asarray(norms)
    factor = jnp.asarray(value)
    two, l_1, largest = tokens
    C = {
        "1,1": trauger2023_cover("1,1", total, two, d, d),
        "1,inf": trauger2023_cover("1,inf", column, l_1, d, d),
        "2,1": trauger2023_cover("2,1", row_sum, l_1, d, d, m),
        "log T": edelman2022_cover(row_sum, two, m * S, d, m),
        "log m": edelman2022_cover(at_cls, two, m, d, m),
    }
    complexities = []
    for name, constants in ROWS:
        if name == "parameters":
            complexities.append(parameter_counting_single(factor, spectral, two, d * d, d, m))
        else:
            complexities.append(
                trauger2023_single(
                    factor, C[name], two, d, m, constants=constants, largest_entry=largest
                )
            )
    return jnp.stack(complexities)


@partial(jax.jit, static_argnames=("d", "delta"), compiler_options=CHEAP_COMPILATION)
def _bounds(norms: MajorityNorms, m: Array, S: Array, d: int, delta: float) -> tuple[Array, Array]:
    printed = np.array([constants == "printed" for _, constants in ROWS])

    def bounds_of_run(run: MajorityNorms) -> tuple[Array, Array]:
        pooled = jnp.sum(run.value) * run.tokens[2]
        spread = jnp.mean(run.readout * (pooled + run.bias) + run.constant)

        def at(m: Array) -> Array:
            heads = jax.vmap(_head_bounds, (0, 0, None, None, None, None))
            network = jnp.sum(heads(run.query_key, run.value, run.tokens, m, S, d), axis=0)
            cut = jnp.where(printed, network, jnp.minimum(network, pooled))
            inside = cut + 2 * run.bias / jnp.sqrt(m)
            fixed = jnp.mean(run.constant) / jnp.sqrt(m)
            complexity = jnp.mean(run.readout) * inside + fixed
            return jax.vmap(lambda R: generalisation_gap(R, m, delta, spread))(complexity)

        return jax.vmap(at, out_axes=1)(m), spread

    # One run at a time: the chains of one have 100 x 48 levels for each row and m.
    return jax.lax.map(bounds_of_run, norms)
