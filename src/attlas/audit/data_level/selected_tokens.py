r"""The tokens that heads select, against the attention SVM of the same selection.

Row i of head h selects the visible token of largest logit x_j' W z_i. In the space of normalised
tokens W = scale W_K [W_Q', b_Q] and z_i is the token with a 1 appended; where positions rotate
queries and keys, or norms bend them, no such W is, and in the space of the head's own queries z_i
and keys x_j, rotated and normalised, W = scale I. The SVM of the selections lives in the span of
the x and of the picked rows' z, and W is compared with it there. Margins of two spaces have
different units; the same selection of random tokens is the reference in either.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attlas.core.solution import Result, Solution
from attlas.solvers.attention_svm import attention_svm_batch

SUPPORT = 1e-6
"""Margins up to 1 + SUPPORT count as 1, as in `support_tokens`."""


class HeadTokens(NamedTuple):
    """Heads of one layer on one sequence, in float64.

    Attributes:
        tokens: x_j, of all heads together or of each.
        queries: z_i of the picked rows, likewise.
        matrices: W of each head.
        seen: which tokens each picked row sees, at least two.
    """

    tokens: Float[np.ndarray, "*H T d"]
    queries: Float[np.ndarray, "*H n e"]
    matrices: Sequence[tuple[Float[np.ndarray, "d k"], Float[np.ndarray, "k e"]]]
    seen: Bool[np.ndarray, "n T"]


class SelectedTokens(NamedTuple):
    """One entry per head.

    Attributes:
        selection: selected token of each row.
        margin: largest margin of a matrix of norm 1, 1 / ||W_mm||_F; 0 where no matrix selects
            these tokens, NaN where not certified.
        reached: smallest margin of the head's own matrix, of norm 1 in the span of the data.
        cosine: between the head's matrix in that span and W_mm; NaN where there is none.
        margins: of all tokens for W_mm, 0 at the selected ones and at those not seen.
    """

    selection: Int[np.ndarray, "H n"]
    margin: Float[np.ndarray, " H"]
    reached: Float[np.ndarray, " H"]
    cosine: Float[np.ndarray, " H"]
    margins: Float[np.ndarray, "H n T"]


def selected_tokens(
    heads: HeadTokens, tokens: Int[np.ndarray, "H n"] | None = None
) -> SelectedTokens:
    r"""Margin of a selection of tokens, and how far each head's matrix is from max-margin.

    $$W_{mm}=\arg\min\|W\|_F\ \text{s.t.}\ (x_{s(i)}-x_j)^\top Wz_i\ge1,\ j\in S_i\setminus s(i)$$

    With fewer tokens than dimensions nearly every selection has a matrix, so that a margin means
    something beside that of another selection only: hand over random tokens for the null.

    Args:
        tokens: selected by each head; those of largest logit when None.

    Source: ($\ell_p$-AttSVM) at p = 2 of julistiono2024optimizing, on rows of one sequence.

    Examples:
        Two tokens, of which the first has the larger logit: W_mm is the difference times z'.

        >>> head = (np.array([[1.0], [0.0]]), np.array([[3.0]]))
        >>> one = HeadTokens(np.eye(2), np.ones((1, 1)), [head], np.ones((1, 2), bool))
        >>> found = selected_tokens(one)
        >>> print(found.selection.tolist(), found.margin.round(6), found.cosine.round(6))
        [[0]] [1.414214] [0.707107]
    """
    count = len(heads.matrices)
    (x, base_x), (z, base_z) = (_in_span(rows, count) for rows in (heads.tokens, heads.queries))
    bases = zip(heads.matrices, base_x, base_z, strict=True)
    inside = np.stack([(to_x.T @ left) @ (right @ to_z) for (left, right), to_x, to_z in bases])
    logits = np.einsum("hjd,hde,hie->hij", x, inside, z)
    visible = np.where(heads.seen, logits, -np.inf)
    selection = visible.argmax(axis=2) if tokens is None else tokens
    solution = _solve(x, z, selection, heads.seen)
    gap = np.take_along_axis(logits, selection[..., None], 2) - logits
    competitors = heads.seen & (np.arange(x.shape[1]) != selection[..., None])
    smallest = np.where(competitors, gap, np.inf).min(axis=(1, 2))
    size = np.linalg.norm(inside, axis=(1, 2))
    target = np.asarray(solution.value)[:, : x.shape[2], : z.shape[2]]
    norm = np.linalg.norm(target, axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.sum(target * inside, axis=(1, 2)) / (norm * size)
        reached = smallest / size
    solved = np.where(solution.converged, 1 / solution.certificate["norm_upper"], np.nan)
    infeasible = solution.result == Result.INFEASIBLE.value
    margins = np.where(competitors, solution.certificate["margins"], 0)
    return SelectedTokens(
        selection,
        np.where(infeasible, 0.0, solved),
        reached,
        np.where(solution.converged, cosine, np.nan),
        margins,
    )


def random_selection(
    seen: Bool[np.ndarray, "n T"], heads: int, draw: np.random.Generator
) -> Int[np.ndarray, "H n"]:
    """Selections that mean nothing: one visible token per row, all equally likely.

    Examples:
        >>> random_selection(np.array([[True, False]]), 2, np.random.default_rng(0)).tolist()
        [[0], [0]]
    """
    scores = draw.random((heads, *seen.shape))
    return np.where(seen, scores, -1.0).argmax(axis=2)


def support_of(selected: SelectedTokens) -> Bool[np.ndarray, "H n T"]:
    """Support tokens of each selection: those that bind the max-margin matrix."""
    return (selected.margins > 0) & (selected.margins <= 1 + SUPPORT)


def locally_optimal(
    selected: SelectedTokens, scores: Float[np.ndarray, "H n T"]
) -> Bool[np.ndarray, "H n"]:
    """Which selections score higher than all their support tokens.

    Scores gamma need a loss: the fall of the loss as the head's output moves along a token's
    value. Level data has none: level deep has, see `optimal_selections`.

    Returns:
        One answer per head and row; false without a certified SVM.

    Source: section 1.1 of julistiono2024optimizing.

    Examples:
        >>> head = (np.array([[1.0], [0.0]]), np.array([[3.0]]))
        >>> one = HeadTokens(np.eye(2), np.ones((1, 1)), [head], np.ones((1, 2), bool))
        >>> locally_optimal(selected_tokens(one), np.array([[[1.0, 0.0]]])).tolist()
        [[True]]
    """
    score = np.take_along_axis(scores, selected.selection[..., None], 2)
    support = support_of(selected)
    solved = np.isfinite(selected.margin) & (selected.margin > 0)
    return np.all(~support | (score > scores), axis=2) & solved[:, None]


def _solve(
    x: Float[np.ndarray, "H T r"],
    z: Float[np.ndarray, "H n q"],
    selection: Int[np.ndarray, "H n"],
    seen: Bool[np.ndarray, "n T"],
) -> Solution:
    """The SVM of each head, the smaller of the two spans padded to the larger."""
    width = max(x.shape[2], z.shape[2])
    tokens, queries = (np.pad(a, ((0, 0), (0, 0), (0, width - a.shape[2]))) for a in (x, z))
    # What a row does not see is replaced by a token that it sees: a constraint given twice.
    columns = np.arange(x.shape[1])
    competitors = seen & (columns != selection[..., None])
    place = np.where(seen, columns, competitors.argmax(axis=2)[..., None])
    head = np.arange(len(x))[:, None, None]
    return attention_svm_batch(tokens[head, place], queries, selection, 2.0)


def _in_span(
    rows: Float[np.ndarray, "*H n d"], heads: int
) -> tuple[Float[np.ndarray, "H n r"], Float[np.ndarray, "H d r"]]:
    """Rows of each head in orthonormal directions that hold them, and the directions."""
    base = np.linalg.qr(np.swapaxes(rows, -1, -2))[0]
    base = np.broadcast_to(base, (heads, *base.shape[-2:]))
    return rows @ base, base
