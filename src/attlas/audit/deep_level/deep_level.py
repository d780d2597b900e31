r"""Level deep: what a head does to the loss, and how curved the loss is in its weights."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from attlas.audit.deep_level.ablation import REPLACEMENTS, ablate_heads
from attlas.audit.deep_level.head_curvature import CURVATURE_STEPS, head_curvature
from attlas.audit.deep_level.head_importance import head_importance
from attlas.audit.quantity import Quantity, Standing, labelled
from attlas.audit.sequence_loss import JudgedBatch, shortest_sequences
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean
from attlas.measures.statistics.rank_correlation import rank_correlation

_STANDS = {
    "zero": "nothing",
    "mean": "its mean output over the batch",
    "uniform": "its own values under equal weights",
}

DEEP_QUANTITIES = (
    *(
        Quantity(
            f"removal_{name}",
            f"change of the loss with {stands} in place of the head",
            r"$L_{-h}-L$",
            "in nats; the interval is a bootstrap over sequences",
            Standing.MEASURED,
        )
        for name, stands in _STANDS.items()
    ),
    Quantity(
        "michel_score",
        "Michel's score",
        r"$\mathbb E|\operatorname{tr}(\mathrm{Att}_h'\,\partial L/\partial\mathrm{Att}_h)|$",
        "slope of the loss in the head's size, of length 1 within a layer; 0 throughout where "
        "the loss is the divergence from the model itself",
        Standing.HEURISTIC,
    ),
)

_ENDS = {"smallest": r"\lambda_{\min}", "largest": r"\lambda_{\max}"}

CURVATURE_QUANTITIES = (
    *(
        Quantity(
            name,
            f"{name} Hessian eigenvalue in the head's weights",
            f"${symbol}$",
            "of the mean loss, with an interval that holds it; its sign is known where the "
            "interval excludes 0",
            Standing.MEASURED,
        )
        for name, symbol in _ENDS.items()
    ),
    *(
        Quantity(
            f"{name}_residual",
            f"residual of the {name} Hessian eigenvalue",
            rf"$|Hv-\theta v|,\ \theta\approx{symbol}$",
            "some eigenvalue of the head's block is that near to the stated one",
            Standing.MEASURED,
        )
        for name, symbol in _ENDS.items()
    ),
)


def deep_level(
    model: TrainedTransformer,
    batch: JudgedBatch,
    *,
    curvature: bool = True,
    curvature_sequences: int = 4,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
) -> tuple[xr.Dataset, Mapping[str, int | float]]:
    r"""Removal, importance and curvature of every head.

    Args:
        model: the model.
        batch: sequences and their loss.
        curvature: whether Hessian extremes of each head are computed, the costly part.
        curvature_sequences: how many of the sequences their loss takes, the shortest.
        progress: told the part, how much of it is done and of how much: layers whose heads were
            removed, Hessian products.

    Returns:
        Variables [layer, head], and numbers of the whole model: `loss`, its interval,
        `rank_correlation` of Michel's score with the size of the exact change, and what the
        curvature was computed from.
    """
    ablation = ablate_heads(model, batch, lambda done, all_: progress("removals", done, all_))
    values: dict[str, np.ndarray] = {}
    for place, name in enumerate(REPLACEMENTS):
        change = ablation.removed[:, :, place] - ablation.base
        found = bootstrap_mean(np.moveaxis(change, -1, 0))
        values[f"removal_{name}"] = found.mean
        values[f"removal_{name}_low"], values[f"removal_{name}_high"] = found.low, found.high
    slopes = head_importance(model, batch).mean(axis=0)
    length = np.linalg.norm(slopes, axis=1, keepdims=True)
    values["michel_score"] = np.where(length > 0, slopes / np.where(length > 0, length, 1), 0.0)
    quantities, facts = DEEP_QUANTITIES, {}
    if curvature:
        few = shortest_sequences(batch, curvature_sequences)
        found = head_curvature(model, few, progress=lambda *told: progress("curvature", *told))
        values |= found._asdict()
        quantities = (*DEEP_QUANTITIES, *CURVATURE_QUANTITIES)
        facts = {
            "curvature_sequences": few.tokens.shape[0],
            "curvature_tokens": int(few.present.sum()),
            "curvature_products": CURVATURE_STEPS,
        }
    base = bootstrap_mean(ablation.base)
    exact = np.abs(values["removal_zero"]).ravel()
    facts |= {
        "loss": float(base.mean),
        "loss_low": float(base.low),
        "loss_high": float(base.high),
        "rank_correlation": float(rank_correlation(slopes.ravel(), exact)),
    }
    return labelled(quantities, values, ("layer", "head")), facts
