"""The rows of a comparison: Rademacher bounds on the two classes of trauger2023sequence."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from attlas.bounds.dudley import dudley_chain, dudley_integral
from attlas.bounds.edelman2022_cover import edelman2022_cover
from attlas.bounds.parameter_counting import parameter_counting_single, parameter_entropy
from attlas.bounds.transformer_weights import (
    MatrixNorms,
    TransformerWeights,
    cls_row_sum,
    matrix_norms,
    query_key_norms,
)
from attlas.bounds.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.trauger2023_cover import Ball, Version, trauger2023_cover
from attlas.bounds.trauger2023_deep import Part, trauger2023_deep, trauger2023_parts
from attlas.bounds.trauger2023_masked import trauger2023_masked_parts
from attlas.bounds.trauger2023_single import trauger2023_single

BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
THRESHOLD = {"corrected": 599.3, "sharp": 67.95}
"""m R^2 / D from which Dudley and the chain are below R: docs/proofs/trauger2023_dudley.md."""

LEMMA = {"1,1": "Lemma 3.6", "1,inf": "Lemma 3.3", "2,1": "Lemma 3.4, rows"}


class Inputs(NamedTuple):
    """Number of tokens and their largest Euclidean norm, l_1 norm and entry."""

    T: int
    two: float
    one: float
    largest: float


class Row(NamedTuple):
    """A bound on the Rademacher complexity, with its story.

    `log10_samples` is log10 of the m at which a deep bound falls below its trivial value, NaN for
    rows that do not scale with D / m alone.
    """

    name: str
    value: float
    is_bound: bool
    constants: str
    reason: str
    log10_samples: float = math.nan


def _covers(
    norms: MatrixNorms, two: float, one: float, points: int, m: int, version: Version = "corrected"
) -> dict[str, float]:
    """Entropy coefficients of one matrix by every cover; `two`, `one` bound its inputs."""
    size = (norms.rows, norms.columns)
    C = {
        "1,1": trauger2023_cover("1,1", norms.total, two, *size),
        "1,inf": trauger2023_cover("1,inf", norms.column, one, *size),
        "2,1": trauger2023_cover("2,1", norms.row_sum, one, *size, m, version),
        "log T": edelman2022_cover(norms.row_sum, two, points, norms.rows, m),
    }
    # a matrix that is 0 has nothing to cover; the tiny value keeps the allocation defined
    return {name: max(float(value), 1e-300) for name, value in C.items()}


def plain_bounds(
    weights: TransformerWeights, tokens: Inputs, m: int, lipschitz: float, loss_range: float
) -> list[Row]:
    """Rows for one layer without normalisation, heads added up.

    Args:
        weights: one layer, readout (d,).
        tokens: norms of the inputs.
        m: samples.
        lipschitz: L_sigma.
        loss_range: unused; both classes share the signature.

    Returns:
        The rows.

    Examples:
        >>> from attlas.bounds.transformer_weights import Head
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> weights = TransformerWeights(((head,),), np.ones(2))
        >>> row = plain_bounds(weights, Inputs(2, 1.0, 1.0, 1.0), 100, 1.0, 1.0)[0]
        >>> row.name, f"{row.value:.4f}"
        ('trivial', '2.0000')
    """
    del loss_range
    d = weights.readout.shape[0]
    outer = float(np.abs(weights.readout).sum()) * lipschitz
    heads = weights.layers[0]
    # columns of W_c and of W_v are the rows of what acts on the features
    B = [outer * matrix_norms(h.output.T).row * matrix_norms(h.value.T).row for h in heads]
    qk = [query_key_norms(head.query_key) for head in heads]
    C = [
        {
            **_covers(norms, tokens.two, tokens.one, m * tokens.T, m),
            # on the [CLS] side alone: the columns of W_QK
            "log m": max(float(edelman2022_cover(cls_row_sum(h), tokens.two, m, d, m)), 1e-300),
        }
        for norms, h in zip(qk, heads, strict=True)
    ]
    trivial = sum(B) * tokens.largest
    rows = [Row("trivial", trivial, True, "none", "largest |output| of the class")]

    def total(name: str, version: Version) -> float:
        parts = [
            float(trauger2023_single(b, c[name], tokens.two, d, m, version, tokens.largest))
            for b, c in zip(B, C, strict=True)
        ]
        # a formula with its constant unknown is no bound and is shown as it comes out
        return sum(parts) if version == "printed" else min(sum(parts), trivial)

    rows += _plain_covers(total)
    counted = [
        min(
            parameter_counting_single(b, n.spectral, tokens.two, p, d, m, f)
            for p, f in ((d * d, False), (2 * d * n.rank, True))
        )
        for b, n in zip(B, qk, strict=True)
    ]
    reason = "dimension of W_QK times logarithm of its spectral norm"
    value = min(float(sum(counted)), trivial)
    return [*rows, Row("parameters", value, True, "chain, softmax 1", reason)]


def _plain_covers(total: Callable[[str, Version], float]) -> list[Row]:
    """The rows of Theorem 4.1 by each cover of W_QK."""
    rows = []
    for ball in BALLS:
        where = f"Theorem 4.1 with {LEMMA[ball]}, ||W_QK||_{{{ball}}}"
        rows += [
            Row(f"{ball} printed", total(ball, "printed"), False, "unknown c set to 1", where),
            Row(
                f"{ball} corrected", total(ball, "corrected"), True, "2.41, 8.24, softmax 2", where
            ),
            Row(f"{ball} sharp", total(ball, "sharp"), True, "chain, softmax 1", where),
        ]
    where = "Edelman et al. 2022 cover of W_QK at"
    return [
        *rows,
        Row("log T", total("log T", "sharp"), True, "chain, softmax 1", f"{where} m T tokens"),
        Row("log m", total("log m", "sharp"), True, "chain, softmax 1", f"{where} m [CLS] tokens"),
    ]


class Matrices(NamedTuple):
    """Parts of a deep network with the norms of their matrices, in the same order."""

    parts: list[Part]
    norms: list[MatrixNorms]


def _matrices(
    weights: TransformerWeights,
    measured: list[list[tuple[MatrixNorms, MatrixNorms, MatrixNorms]]],
    tokens: Inputs,
    lipschitz: float,
    version: Version,
) -> Matrices:
    """Costs and norms of all matrices; layers of fewer heads are filled with zero heads."""
    masked = weights.readout.ndim == 2
    widest = max(len(heads) for heads in measured)
    sizes = np.zeros((3, len(measured), widest))
    for layer, heads in enumerate(measured):
        for head, triple in enumerate(heads):
            sizes[:, layer, head] = [norms.spectral for norms in triple]
    readout = float(np.sqrt(np.max(np.sum(np.atleast_2d(weights.readout) ** 2, axis=1))))
    c, v, qk = (jnp.asarray(size) for size in sizes)
    parts = trauger2023_parts(c, v, qk, readout, tokens.two, lipschitz, version)
    kept, norms = [parts[0]], [matrix_norms(np.atleast_2d(weights.readout))]
    for layer, heads in enumerate(measured):
        for head, triple in enumerate(heads):
            start = 1 + 3 * (layer * widest + head)
            kept += parts[start : start + 3]
            norms += triple
    return Matrices(trauger2023_masked_parts(kept) if masked else kept, norms)


def normalised_bounds(
    weights: TransformerWeights, tokens: Inputs, m: int, lipschitz: float, loss_range: float
) -> list[Row]:
    """Rows for layers with normalisation; of the losses where the readout has K rows.

    Args:
        weights: the Transformer.
        tokens: norms of the inputs.
        m: samples.
        lipschitz: L_sigma.
        loss_range: length of the interval of the losses, for a readout of K rows.

    Returns:
        The rows.

    Examples:
        >>> from attlas.bounds.transformer_weights import Head
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> weights = TransformerWeights(((head,),), np.ones(2))
        >>> row = normalised_bounds(weights, Inputs(2, 1.0, 1.0, 1.0), 100, 1.0, 1.0)[0]
        >>> row.name, f"{row.value:.4f}"
        ('trivial', '1.4142')
    """
    measured = [
        [
            (matrix_norms(h.output.T), matrix_norms(h.value.T), query_key_norms(h.query_key))
            for h in heads
        ]
        for heads in weights.layers
    ]
    masked = weights.readout.ndim == 2
    # a constant taken off the losses leaves the complexity as it is: half the range is enough
    radius = loss_range / 2 if masked else max(float(np.linalg.norm(weights.readout)), 1e-300)
    what = "half the range of the loss" if masked else "largest |output| of the class"
    rows = [Row("trivial", radius, True, "none", what)]
    theorem = "Theorem 5.1 by a cover of the scores" if masked else "Theorem 4.2"
    versions: tuple[tuple[Version, str], ...] = (
        ("corrected", "2.41, 8.24, softmax 2"),
        ("sharp", "chain, softmax 1"),
    )
    for version, words in versions:
        matrices = _matrices(weights, measured, tokens, lipschitz, version)
        beta = jnp.stack([part.beta for part in matrices.parts])
        C = _part_covers(matrices, tokens, m)
        for name in [*BALLS, "log T", "mixed"] if version == "sharp" else [*BALLS, "log T"]:
            chosen = jnp.asarray([c[name] for c in C])
            entropy, _ = trauger2023_allocation(chosen, beta)
            if version == "sharp":
                value = trauger2023_deep(chosen, beta, m, radius)
            else:
                value = jnp.minimum(dudley_integral(0.0, entropy, m, radius), radius)
            reason = f"{theorem}, {_reason(name)}"
            needed = (
                math.log10(THRESHOLD[version]) + math.log10(float(entropy)) - 2 * math.log10(radius)
            )
            rows.append(Row(f"{name} {version}", float(value), True, words, reason, needed))
    counted = _count_parameters(matrices, tokens, m, radius)
    reason = f"{theorem}, dimensions times logarithms of spectral norms"
    return [*rows, Row("parameters", counted, True, "chain, softmax 1", reason)]


def _reason(name: str) -> str:
    """Which cover a name means."""
    if name in LEMMA:
        return f"all matrices by {LEMMA[name]}"
    if name == "mixed":
        return "each matrix by its smallest cover"
    return "all matrices by the cover of Edelman et al. 2022 at m T tokens"


def _reaches(part: Part, norms: MatrixNorms, tokens: Inputs) -> tuple[float, float]:
    """Euclidean and l_1 bounds on the inputs of one matrix."""
    reach = float(part.reach)
    spread = math.sqrt(norms.columns) * reach
    raw = part.layer == 1 and part.kind != "output"
    return reach, min(spread, tokens.one) if raw else spread


def _part_covers(matrices: Matrices, tokens: Inputs, m: int) -> list[dict[str, float]]:
    """Entropy coefficients of every part, with the smallest as "mixed"."""
    found = []
    for part, norms in zip(*matrices, strict=True):
        points = m if part.kind == "readout" else m * tokens.T
        C = _covers(norms, *_reaches(part, norms, tokens), points, m)
        found.append({**C, "mixed": min(C.values())})
    return found


def _count_parameters(matrices: Matrices, tokens: Inputs, m: int, radius: float) -> float:
    """The chain over parameter counts, full or factored, whichever is fewer."""
    p, scale = [], []
    for part, norms in zip(*matrices, strict=True):
        full, low = norms.rows * norms.columns, norms.rank * (norms.rows + norms.columns)
        p.append(float(min(full, low)))
        factor = 2.0 if full <= low else 4.0
        scale.append(max(factor * norms.spectral * float(part.reach), 1e-300))
    beta = jnp.maximum(jnp.stack([part.beta for part in matrices.parts]), 1e-300)
    arrays = jnp.asarray(p), jnp.asarray(scale), beta
    return float(dudley_chain(lambda epsilon: parameter_entropy(*arrays, epsilon), m, radius))
