r"""Level weights: what the five papers' quantities are on the weights alone, for every head.

Nothing of size d x d is formed: products W_Q W_K' and W_V W_O are read through their k x k cores,
one layer at a time.
"""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from attlas.audit.quantity import EvidenceLevel, Quantity, labelled
from attlas.audit.weights_level.head_certificates import (
    CERTIFICATES,
    LAYER_CERTIFICATE,
    head_certificates,
)
from attlas.bounds.attention.layer_lipschitz import layer_lipschitz
from attlas.core.checkpoint import tree_digest
from attlas.measures.attention.product_spectrum import (
    ProductSpectrum,
    product_norm,
    product_spectrum,
)
from attlas.measures.attention.subspace_overlap import subspace_overlap
from attlas.transformers.canonical import Attention, AttentionBlock, Dense, Norm
from attlas.transformers.folding import folded_attention
from attlas.transformers.trained_transformer import TrainedTransformer

_BLOCK = 2**26
"""Bytes of the factors, in float64, of the heads that are worked on together."""

_layer = jax.jit(layer_lipschitz)  # infinite where a head's certificate is

_MEASURED, _HEURISTIC = EvidenceLevel.MEASURED, EvidenceLevel.HEURISTIC

_SPECTRA = (
    ("norm", "spectral norm", r"\sigma_1", "the largest gain in one direction"),
    ("frobenius", "Frobenius norm", r"\|M\|_F", "the size of all entries"),
    ("nuclear", "nuclear norm", r"\sum_i\sigma_i", "what joint training of factors keeps small"),
    ("stable_rank", "stable rank", r"\|M\|_F^2/\sigma_1^2", "1 for a single direction"),
    (
        "effective_rank",
        "effective rank",
        r"\exp(-\sum_i s_i\ln s_i),\ s_i=\sigma_i/\sum_j\sigma_j",
        "how many directions matter",
    ),
    (
        "nuclear_share",
        "nuclear over Frobenius norm",
        r"\sum_i\sigma_i/(\sqrt k\,\|M\|_F)",
        "1 for equal singular values, small where the head is of low rank",
    ),
)
_PRODUCTS = (("qk", "query-key", r"M=W_QW_K'/\sqrt{k}"), ("ov", "value-output", "M=W_VW_O"))

_PAGE: dict[str, dict[str, Any]] = {
    "qk_norm": {"column": "query-key norm", "follow": True, "curve": "query-key norm"},
    "qk_stable_rank": {"column": "stable rank"},
    "ov_norm": {"column": "value-output norm", "follow": True},
}

WEIGHT_QUANTITIES = (
    *(
        Quantity(
            f"{short}_{name}",
            f"{title} of the {of} product",
            f"${formula},\\ {product}$",
            meaning,
            _MEASURED,
            **_PAGE.get(f"{short}_{name}", {}),
        )
        for short, of, product in _PRODUCTS
        for name, title, formula, meaning in _SPECTRA
    ),
    Quantity(
        "qk_norm_raw",
        "spectral norm of the query-key product before folding",
        r"$\sigma_1(W_QW_K'/\sqrt k)$",
        "changes when the norm's gain is moved into the weights; no property of the head",
        _MEASURED,
    ),
    Quantity(
        "ov_norm_raw",
        "spectral norm of the value-output product before folding",
        r"$\sigma_1(W_VW_O)$",
        "changes when the norm's gain is moved into the weights; no property of the head",
        _MEASURED,
    ),
    Quantity(
        "qk_symmetric_share",
        "share of the symmetric part of the query-key product",
        r"$\|(M+M')/2\|_F^2/\|M\|_F^2$",
        "1/2 for a matrix without structure, 1 where tokens attend to what is like them",
        _MEASURED,
        "qk_symmetric_share_null",
    ),
    Quantity(
        "ov_positivity",
        "positivity of the value-output product",
        r"$\sum_i\operatorname{Re}\lambda_i/\sum_i|\lambda_i|$",
        "1 where the head copies what it reads, -1 where it erases it; none in a layer that reads "
        "rows of another width",
        _HEURISTIC,
        "ov_positivity_null",
    ),
    Quantity(
        "read_overlap",
        "mean overlap of the query subspace with the other heads of its layer",
        r"$\|U_i'U_j\|_F^2/k$",
        "heads that read the same directions are candidates for redundancy",
        _HEURISTIC,
        "read_overlap_null",
    ),
    Quantity(
        "read_overlap_z",
        "overlap of the query subspaces, in standard deviations of random ones",
        "",
        "above 3: more than chance",
        _HEURISTIC,
    ),
    Quantity(
        "write_overlap",
        "mean overlap of the output subspace with the other heads of its layer",
        r"$\|U_i'U_j\|_F^2/k$",
        "heads that write the same directions",
        _HEURISTIC,
        "write_overlap_null",
    ),
    Quantity(
        "write_overlap_z",
        "overlap of the output subspaces, in standard deviations of random ones",
        "",
        "above 3: more than chance",
        _HEURISTIC,
    ),
    *CERTIFICATES,
    LAYER_CERTIFICATE,
)


DIGEST = "weights_sha256"
"""Name, among the values of a layer, of the digest of the weights that they were computed from."""
Cache = Callable[
    [int, Callable[[], dict[str, np.ndarray]], Callable[[], str]], dict[str, np.ndarray]
]
"""Given a layer's number, what computes its values and what gives the digest of its weights, the
values, stored or new."""


def no_cache(
    index: int, compute: Callable[[], dict[str, np.ndarray]], digest: Callable[[], str]
) -> dict[str, np.ndarray]:
    """Compute without a cache."""
    return compute()


def weights_level(
    model: TrainedTransformer,
    context: int,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    cache: Cache = no_cache,
) -> xr.Dataset:
    r"""Spectra, overlaps and certificates of every head, from the weights alone.

    Args:
        context: n, number of tokens that certificates which depend on it are made for.
        progress: called with the number of layers done, and of all layers.
        cache: a place to store the values of layers, so that a killed audit resumes.

    Returns:
        Variables [layer, head], described by their attributes; certificates are upper or lower
        bounds for every text. Products are those of the weights with the norm folded in.

    Examples:
        See `attlas.audit.audit`.

        >>> len({quantity.name for quantity in WEIGHT_QUANTITIES}) == len(WEIGHT_QUANTITIES)
        True
    """
    rows = []
    for index in range(model.layers):
        compute = partial(layer_weights, model, index, context)
        rows.append(cache(index, compute, partial(layer_digest, model, index)))
        progress(index + 1, model.layers)
    names = [name for name in rows[0] if name != DIGEST]
    values = {name: np.stack([row[name] for row in rows]) for name in names}
    return labelled(WEIGHT_QUANTITIES, values, ("layer", "head"))


@threadpool_limits.wrap(limits=1, user_api="blas")  # see `attlas.audit.audit`
def layer_weights(model: TrainedTransformer, index: int, context: int) -> dict[str, np.ndarray]:
    """The values of one layer's heads, and the digest of the weights that they come from."""
    block = model.block(index)
    norm, projection = model.input_norm(index, block)
    digest = _digest_of(block, norm, projection)
    values = attention_values(block.attention, norm, projection, context)
    return values | {DIGEST: np.array(digest)}


def attention_values(
    attention: Attention, norm: Norm | None, projection: Dense | None, context: int
) -> dict[str, np.ndarray]:
    """The values of the heads of one attention, by name.

    Args:
        norm: norm before the attention, or None.
        projection: linear map between the norm and the attention, or None.
    """
    with jax.enable_x64(True):
        norm, projection = _in_float64((norm, projection))
    blocks = [
        _some_heads(attention, heads, norm, projection, context)
        for heads in _head_blocks(attention)
    ]
    read = _overlaps("read", np.concatenate([part.pop("reads") for part in blocks]))
    written = _overlaps("write", np.concatenate([part.pop("writes") for part in blocks]))
    joined = {name: np.concatenate([part[name] for part in blocks]) for name in blocks[0]}
    with jax.enable_x64(True):
        together = float(_layer(jnp.asarray(joined["lipschitz_bound"])))
    joined[LAYER_CERTIFICATE.name] = np.full_like(joined["lipschitz_bound"], together)
    return joined | read | written


def layer_digest(model: TrainedTransformer, index: int) -> str:
    """The sha256 of all that `layer_weights` reads of a layer, read now; 64 digits."""
    block = model.block(index)
    return _digest_of(block, *model.input_norm(index, block))


def _digest_of(block: AttentionBlock, norm: Norm | None, projection: Dense | None) -> str:
    tree = block, norm, projection
    return sha256(f"{tree_digest(tree)} {jax.tree.structure(tree)}".encode()).hexdigest()


def _head_blocks(attention: Attention) -> list[range]:
    """Heads whose factors are in memory in float64 together; blocks of one size, one program."""
    heads, width, size = attention.W_Q.shape
    most = max(1, _BLOCK // (4 * 8 * width * size))
    rows = max(
        divisor for divisor in range(1, heads + 1) if heads % divisor == 0 and divisor <= most
    )
    return [range(start, start + rows) for start in range(0, heads, rows)]


def _some_heads(
    attention: Attention,
    heads: range,
    norm: Norm | None,
    projection: Dense | None,
    context: int,
) -> dict[str, np.ndarray]:
    """Values of some heads of a layer, and the bases `reads` and `writes` of their subspaces."""
    with jax.enable_x64(True):
        raw = _selected(attention, heads)
        folded = folded_attention(raw, norm, projection)
    Q, K, V, O = (np.asarray(factor) for factor in _products(raw))
    values = {
        "qk_norm_raw": product_norm(raw.scale * Q, K),
        "ov_norm_raw": product_norm(V, np.swapaxes(O, -1, -2)),
    }
    Q, K, V, O = (np.asarray(factor) for factor in _products(folded))
    spectra = {
        "qk": product_spectrum(folded.scale * Q, K),
        "ov": product_spectrum(V, np.swapaxes(O, -1, -2)),
    }
    for short, spectrum in spectra.items():
        values |= spectrum_values(short, spectrum)
    square = Q.shape[1] == O.shape[2]
    values["qk_symmetric_share"] = spectra["qk"].symmetric_share
    values["qk_symmetric_share_null"] = np.full(len(heads), 0.5)
    # the eigenvalues of V O need tokens and output in one space
    values["ov_positivity"] = spectra["ov"].positivity if square else np.full(len(heads), np.nan)
    values["ov_positivity_null"] = np.zeros(len(heads))
    values |= {"reads": Q, "writes": np.swapaxes(O, -1, -2)}
    return values | head_certificates(folded, norm, context)


def spectrum_values(short: str, spectrum: ProductSpectrum) -> dict[str, np.ndarray]:
    """The spectral quantities of one product, "qk" or "ov", by name."""
    values = {f"{short}_norm": spectrum.singular[:, 0]}
    for name in ("frobenius", "nuclear", "stable_rank", "effective_rank", "nuclear_share"):
        values[f"{short}_{name}"] = getattr(spectrum, name)
    return values


def _selected(attention: Attention, heads: range) -> Attention:
    """Some heads, each with keys and values of its own, in float64 where that is enabled."""
    queries, shared = list(heads), [attention.group[head] for head in heads]
    places = {"W_Q": queries, "b_Q": queries, "W_O": queries, "W_K": shared, "b_K": shared}
    places |= {"W_V": shared, "b_V": shared}
    wide = {
        name: jnp.asarray(np.asarray(getattr(attention, name))[place], np.float64)
        for name, place in places.items()
    }
    relative = attention.relative
    unchanged = _in_float64(
        (attention.b_O, attention.rotary, attention.query_norm, attention.key_norm)
    )
    return Attention(
        **wide,
        b_O=unchanged[0],
        group=tuple(range(len(queries))),
        scale=attention.scale,
        causal=attention.causal,
        window=attention.window,
        rotary=unchanged[1],
        query_norm=unchanged[2],
        key_norm=unchanged[3],
        softcap=attention.softcap,
        relative=None if relative is None else _in_float64(relative[jnp.array(queries)]),
    )


def _in_float64(tree: Any) -> Any:
    """Arrays of a tree in float64; to be called where that precision is enabled."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, np.float64), tree)


def _products(attention: Attention) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Factors of the query-key and the value-output products, gains of key norms included."""
    Q, K = attention.W_Q, attention.W_K
    if attention.query_norm is not None:
        Q = Q * attention.query_norm.gain[None, None]
    if attention.key_norm is not None:
        K = K * attention.key_norm.gain[None, None]
    return Q, K, attention.W_V, attention.W_O


def _overlaps(name: str, bases: np.ndarray) -> dict[str, np.ndarray]:
    """Mean overlap of each head with the others of its layer, and its distance from chance."""
    heads, d, k = bases.shape
    others = np.full(heads, np.nan)
    z = np.full(heads, np.nan)
    if k >= d:  # every head reads everything: there is nothing to compare
        chance = np.ones(heads)
        return {f"{name}_overlap": others, f"{name}_overlap_null": chance, f"{name}_overlap_z": z}
    overlap = subspace_overlap(bases)
    if heads > 1:
        others = (overlap.overlap.sum(axis=1) - 1) / (heads - 1)
        # overlaps of one subspace with independent ones are uncorrelated
        z = (others - overlap.expected) / (overlap.deviation / np.sqrt(heads - 1))
    return {
        f"{name}_overlap": others,
        f"{name}_overlap_null": np.full(heads, overlap.expected),
        f"{name}_overlap_z": z,
    }
