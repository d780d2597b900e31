r"""Level deep: what a head does to the loss, and how curved the loss is in its weights."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from attlas.audit.deep_level.ablation import REPLACEMENTS, Ablation, ablate_heads
from attlas.audit.deep_level.head_curvature import CURVATURE_STEPS, head_curvature
from attlas.audit.deep_level.head_importance import head_importance
from attlas.audit.deep_level.optimal_selections import optimal_selections
from attlas.audit.halves import held_out
from attlas.audit.quantity import EvidenceLevel, Quantity, labelled
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, shortest_sequences
from attlas.core.arrays import ArrayInput
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean
from attlas.measures.statistics.rank_correlation import rank_correlation
from attlas.transformers.trained_transformer import TrainedTransformer

_STANDS = {
    "zero": "nothing",
    "mean": "its mean output over the batch",
    "uniform": "its own values under equal weights",
}

ABLATIONS = tuple(
    Quantity(
        f"removal_{name}",
        f"change of the loss with {stands} in place of the head",
        r"$L_{-h}-L$",
        "the interval is a bootstrap over sequences; the reference is how far the loss moves, to "
        "the end of such an interval, when every weight of the layers is perturbed by a random "
        "share of at most $2^{-8}$, as rounding to bfloat16 does",
        EvidenceLevel.MEASURED,
        f"removal_{name}_null",
        column="loss change when ablated" if name == "mean" else "",
    )
    for name, stands in _STANDS.items()
)

DEEP_QUANTITIES = (
    *ABLATIONS,
    Quantity(
        "michel_score",
        "Michel's score",
        r"$\mathbb E|\operatorname{tr}(\mathrm{Att}_h'\,\partial L/\partial\mathrm{Att}_h)|$",
        "slope of the loss in the head's size, of length 1 within a layer; a loss that compares "
        "the model with itself has none",
        EvidenceLevel.HEURISTIC,
    ),
    Quantity(
        "locally_optimal",
        "share of locally optimal selections",
        r"$\gamma_{is(i)}>\gamma_{ij}$",
        "rows whose token of largest logit lowers the loss more, to first order, than each support "
        "token of its attention SVM, in the space of level data's; the reference is scores in "
        "random order; none where the loss compares the model with itself",
        EvidenceLevel.HEURISTIC,
        "locally_optimal_null",
        column="locally optimal",
    ),
)

_ENDS = {"smallest": r"\lambda_{\min}", "largest": r"\lambda_{\max}"}

CURVATURE_QUANTITIES = (
    *(
        Quantity(
            name,
            f"{name} Hessian eigenvalue in the head's weights",
            f"${symbol}$",
            "of the mean loss, with an interval that holds it; its sign is certain where the "
            "interval excludes 0, and not reported elsewhere",
            EvidenceLevel.MEASURED,
        )
        for name, symbol in _ENDS.items()
    ),
    *(
        Quantity(
            f"{name}_residual",
            f"residual of the {name} Hessian eigenvalue",
            rf"$|Hv-\theta v|,\ \theta\approx{symbol}$",
            "some eigenvalue of the head's block is that near to the stated one",
            EvidenceLevel.MEASURED,
        )
        for name, symbol in _ENDS.items()
    ),
)


class DeepLevel(NamedTuple):
    """Level deep of one model.

    Attributes:
        heads: variables [layer, head].
        facts: of the whole model: `loss`, its interval and its unit, `rank_correlation` of
            Michel's score with the size of the exact change where the loss has slopes, and what
            the curvature and the local optimality were computed from.
        choosing: changes of the loss without each head, on the sequences that are not held out.
    """

    heads: xr.Dataset
    facts: dict[str, int | float | str]
    choosing: xr.Dataset


def deep_level(
    model: TrainedTransformer,
    batch: JudgedBatch,
    *,
    curvature: bool = True,
    curvature_sequences: int = 4,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
) -> DeepLevel:
    r"""Ablation, importance and curvature of every head.

    Args:
        curvature: whether Hessian extremes of each head are computed, the costly part.
        curvature_sequences: number of sequences in their loss, the shortest.
        progress: called with the part, how much of it is done and of how much: layers whose heads
            were ablated, Hessian products.

    """
    ablation = ablate_heads(model, batch, lambda done, all_: progress("removals", done, all_))
    values = _ablated(ablation)
    base = bootstrap_mean(ablation.base)
    facts: dict[str, int | float | str] = {
        "loss": float(base.mean),
        "loss_low": float(base.low),
        "loss_high": float(base.high),
        "loss_unit": batch.unit,
    }
    if batch.kind not in COMPARED:
        slopes = head_importance(model, batch).mean(axis=0)
        length = np.linalg.norm(slopes, axis=1, keepdims=True)
        values["michel_score"] = np.where(length > 0, slopes / np.where(length > 0, length, 1), 0)
        exact = np.abs(values["removal_zero"]).ravel()
        facts["rank_correlation"] = float(rank_correlation(slopes.ravel(), exact))
    else:
        values["michel_score"] = np.full(values["removal_zero"].shape, np.nan)
    optimal, counts = _optimal(model, batch)
    values, facts = values | optimal, facts | counts
    quantities = [
        quantity._replace(unit=batch.unit) if quantity in ABLATIONS else quantity
        for quantity in DEEP_QUANTITIES
    ]
    if curvature:
        few = shortest_sequences(batch, curvature_sequences)
        curvatures = head_curvature(
            model, few, progress=lambda *amount: progress("curvature", *amount)
        )
        values |= curvatures._asdict()
        for name in _ENDS:
            values[f"{name}_sign"] = certain_sign(values[f"{name}_low"], values[f"{name}_high"])
        quantities.extend(CURVATURE_QUANTITIES)
        facts |= {
            "curvature_sequences": few.tokens.shape[0],
            "curvature_tokens": int(few.present.sum()),
            "curvature_products": CURVATURE_STEPS,
        }
    heads = labelled(quantities, values, ("layer", "head"))
    held = held_out(ablation.base.size)
    few = _ablated(Ablation(*(np.delete(part, held, axis=-1) for part in ablation)))
    changes = quantities[: len(ABLATIONS)]
    return DeepLevel(heads, facts, labelled(changes, few, ("layer", "head")))


def certain_sign(low: ArrayInput, high: ArrayInput) -> np.ndarray:
    """The sign of what lies in an interval, entrywise: 1 or -1; 0 where it holds 0, or is none.

    Examples:
        >>> certain_sign([1.0, -2.0, -1.0, 0.0], [2.0, -1.0, 1.0, 3.0]).tolist()
        [1, -1, 0, 0]
    """
    return (np.asarray(low) > 0).astype(int) - (np.asarray(high) < 0)


def _ablated(ablation: Ablation) -> dict[str, np.ndarray]:
    """Mean changes of the loss with their intervals and their reference."""
    rounding = bootstrap_mean(ablation.rounded - ablation.base)
    null = max(abs(float(rounding.low)), abs(float(rounding.high)))
    values = {}
    for place, name in enumerate(REPLACEMENTS):
        change = ablation.ablated[:, :, place] - ablation.base
        interval = bootstrap_mean(np.moveaxis(change, -1, 0))
        ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
        ends["_null"] = np.full(interval.mean.shape, null)
        values |= {f"removal_{name}{end}": array for end, array in ends.items()}
    return values


def _optimal(
    model: TrainedTransformer, batch: JudgedBatch
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The share of locally optimal selections, its interval and reference, and of how many."""
    shares = optimal_selections(model, batch)
    if shares is None:
        unknown = np.full((model.layers, model.heads_per_layer), np.nan)
        return {"locally_optimal": unknown, "locally_optimal_null": unknown}, {}
    share = bootstrap_mean(shares.share)
    ends = {"": share.mean, "_low": share.low, "_high": share.high}
    ends["_null"] = shares.null.mean(axis=0)
    counts = {"selection_sequences": len(shares.share), "selection_rows": shares.rows}
    return {f"locally_optimal{end}": array for end, array in ends.items()}, counts
