r"""Level weights: what the five papers' quantities are on the weights alone, for every head.

Nothing of size d x d is formed: products W_Q W_K' and W_V W_O are read through their k x k cores,
one layer at a time.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import xarray as xr

from attlas.audit.quantity import Quantity, Standing, labelled
from attlas.audit.weights_level.head_certificates import CERTIFICATES, head_certificates
from attlas.interop.canonical import Attention
from attlas.interop.folding import folded_attention
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.measures.attention.product_spectrum import product_spectrum
from attlas.measures.attention.subspace_overlap import subspace_overlap

_MEASURED, _HEURISTIC = Standing.MEASURED, Standing.HEURISTIC

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

WEIGHT_QUANTITIES = (
    *(
        Quantity(
            f"{short}_{name}",
            f"{title} of the {of} product",
            f"${formula},\\ {product}$",
            meaning,
            _MEASURED,
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
        "the same of the value path",
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
        "1 where the head copies what it reads, -1 where it erases it",
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
        "the same in standard deviations of random subspaces",
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
        "the same in standard deviations of random subspaces",
        "",
        "above 3: more than chance",
        _HEURISTIC,
    ),
    *CERTIFICATES,
)


def weights_level(
    model: TrainedTransformer,
    context: int,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    keep: Callable[[int, Callable[[], dict]], dict] = lambda index, compute: compute(),
) -> xr.Dataset:
    r"""Spectra, overlaps and certificates of every head, from the weights alone.

    Args:
        model: as `load_model` read it.
        context: n, number of tokens that certificates which depend on it are made for.
        progress: told how many layers of how many are done.
        keep: given a layer's number and what computes it, returns its values: a place to store
            them so that a killed audit resumes.

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
        rows.append(keep(index, lambda index=index: layer_weights(model, index, context)))
        progress(index + 1, model.layers)
    values = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return labelled(WEIGHT_QUANTITIES, values, ("layer", "head"))


def layer_weights(model: TrainedTransformer, index: int, context: int) -> dict[str, np.ndarray]:
    """The values of one layer's heads.

    Args:
        model: the model.
        index: of the layer.
        context: n of the certificates.

    Returns:
        Arrays [head] by name.
    """
    with jax.enable_x64(True):
        raw = _in_float64(model.layer(index).attention)
        norm, projection = model.input_norm(index)
        folded = folded_attention(raw, *_in_float64((norm, projection)))
    found = {}
    group = np.array(folded.group)
    for attention, suffix in ((folded, ""), (raw, "_raw")):
        Q, K, V, O = (np.asarray(each) for each in _products(attention))
        spectra = {
            "qk": product_spectrum(attention.scale * Q, K[group]),
            "ov": product_spectrum(V[group], np.swapaxes(O, -1, -2)),
        }
        for short, spectrum in spectra.items():
            found[f"{short}_norm{suffix}"] = spectrum.singular[:, 0]
            if not suffix:
                for name in ("frobenius", "nuclear", "stable_rank", "effective_rank"):
                    found[f"{short}_{name}"] = getattr(spectrum, name)
                found[f"{short}_nuclear_share"] = spectrum.nuclear_share
        if not suffix:
            square = Q.shape[1] == O.shape[2]
            heads = len(group)
            found["qk_symmetric_share"] = spectra["qk"].symmetric_share
            found["qk_symmetric_share_null"] = np.full(heads, 0.5)
            # the eigenvalues of V O need tokens and output in one space
            found["ov_positivity"] = spectra["ov"].positivity if square else np.full(heads, np.nan)
            found["ov_positivity_null"] = np.zeros(heads)
            found |= _overlaps("read", Q) | _overlaps("write", np.swapaxes(O, -1, -2))
    return found | head_certificates(folded, norm, projection, context)


def _in_float64(tree: Any) -> Any:
    """Arrays of a tree in float64; to be called where that precision is enabled."""
    return jax.tree.map(lambda leaf: jax.numpy.asarray(leaf, np.float64), tree)


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
    heads = bases.shape[0]
    found = subspace_overlap(bases)
    others = np.full(heads, np.nan)
    z = np.full(heads, np.nan)
    if heads > 1:
        others = (found.overlap.sum(axis=1) - 1) / (heads - 1)
        # overlaps of one subspace with independent ones are uncorrelated
        z = (others - found.expected) / (found.deviation / np.sqrt(heads - 1))
    return {
        f"{name}_overlap": others,
        f"{name}_overlap_null": np.full(heads, found.expected),
        f"{name}_overlap_z": z,
    }
