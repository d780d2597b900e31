r"""Every measurement of five papers on trained heads that read the last token.

julistiono2024optimizing (attention SVM), deora2023optimization (margins, Theorems 1 and 2),
gu2024exploring (tangent kernel), trauger2023sequence (norm-based bounds) and liu2021analyzing
(concentration, landscape, sample sizes), all on the same parameters.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1
from attlas.core.checkpoint import without_checkpoints
from attlas.core.piece_cache import cached_pieces
from attlas.models.attention.multi_head import MultiHead
from liu2021analyzing.library.audit.head_landscape import head_landscape
from liu2021analyzing.library.audit.head_margins import HeadMargins, head_margins
from liu2021analyzing.library.audit.head_selection import head_selection
from liu2021analyzing.library.audit.single_head_bounds import (
    TrainedHead,
    head_descent_bounds,
    head_sample_sizes,
    head_transformer,
    head_widths,
)
from liu2021analyzing.library.audit.single_head_path import HeadPath

SEEN = ("risk", "ramp", "error", "decoder", "selection", "norms")
DESCENT = {
    "heads": "heads, printed",
    "heads_sharp": "heads, sharp",
    "stability_heads": "stability heads, printed",
    "stability_heads_sharp": "stability heads, sharp",
    "step": "step, printed",
    "step_sharp": "step, sharp",
    "training": "training, printed",
    "training_sharp": "training, sharp",
    "gap": "gap, printed",
    "gap_sharp": "gap, sharp",
}
COMPARED = (
    "trivial",
    "1,1 corrected",
    "1,1 sharp",
    "1,inf corrected",
    "1,inf sharp",
    "2,1 corrected",
    "2,1 sharp",
    "log T",
    "log m",
    "parameters",
)
ASKED = ("Theorem 1, printed", "Corollary 1, printed", "Theorem 2, printed", "Theorem 2, corrected")
ALPHAS = np.geomspace(0.1, 10.0, 9)


class AuditedHeads(NamedTuple):
    """Heads along their training, host arrays with axes [e, s] or [e] first.

    Attributes:
        path: recorded parameters.
        seen: `single_head_path` of each head.
        stability: average model stability at each record, [e, s].
        X: training samples.
        y: labels.
        R: bound of the tokens' norms known in advance.
        rate: step size.
        steps: numbers of the recorded steps.
    """

    path: MultiHead
    seen: HeadPath
    stability: np.ndarray
    X: np.ndarray
    y: np.ndarray
    fresh_X: np.ndarray
    fresh_y: np.ndarray
    R: float
    rate: float
    steps: np.ndarray


class AuditSettings(NamedTuple):
    """Settings of an audit.

    Attributes:
        gamma: root of the squared error that sample sizes are evaluated at.
        delta: probability with which a bound may fail.
        searches: starts of the search for the global margin.
        climb: gradient steps of each search.
        seed: seed of the searches.
    """

    tau: float = 0.1
    gamma: float = 0.5
    delta: float = 0.05
    searches: int = 6
    climb: int = 150
    seed: int = 0


def audit_heads(heads: AuditedHeads, settings: AuditSettings) -> Mapping[str, np.ndarray]:
    r"""Measure heads by the quantities of all five papers, and evaluate their bounds.

    Args:
        heads: the heads, at least one, their first record the start.

    Returns:
        Arrays by name: `SEEN` and `rate` as they are; `svm_*` of `HeadSelection`; `land_*` of
        `HeadLandscape`; `margin_*` of `HeadMargins`, `margin_reached` the least margin of the last
        record; `stability` and `stability_gap` = 2 G times it; `bound_*` for `DESCENT`, [e, s];
        `width`, [e, 2]; `asked` for `ASKED`; `gap` and `needed` for `COMPARED`, of the ramp risk
        at the last record. `audit_dataset` names their axes.

    Examples:
        See `liu2021analyzing.experiments.common_instance`.

        >>> AuditSettings().delta
        0.05
    """
    path, seen = heads.path, heads.seen
    land = head_landscape(
        path, seen, heads.X, heads.y, heads.fresh_y, tau=settings.tau, alphas=ALPHAS
    )
    margins = _margins(heads, settings)
    selected = head_selection(path, heads.X, heads.y, np.asarray(seen.tokens))
    slope = float(deora2023_beta_1(1, heads.R, float(seen.norms[..., 0].max()), "sharp"))
    audit = {name: getattr(seen, name) for name in SEEN} | {"rate": np.array(heads.rate)}
    audit |= {f"svm_{name}": np.asarray(value) for name, value in selected._asdict().items()}
    audit |= {f"land_{name}": value for name, value in land._asdict().items()}
    for name in HeadMargins._fields:
        audit[f"margin_{name}"] = np.array([getattr(head, name) for head in margins])
    reached = seen.decoder[:, -1] * seen.norms[:, -1, 0]
    audit["margin_reached"] = reached  # the search may miss what training found
    audit["margin_reachable"] = np.maximum(audit["margin_reachable"], reached)
    audit |= {"stability": heads.stability, "stability_gap": 2 * slope * heads.stability}
    audit |= _formulas(heads, audit, settings)
    return audit | _complexities(heads, settings.delta)


def _margins(heads: AuditedHeads, settings: AuditSettings) -> list[HeadMargins]:
    """Paper 2's margins and paper 3's kernel of each head, cached head by head."""

    def margins_of(e: int) -> HeadMargins:
        records = [
            jax.tree.map(lambda a, at=(e, k): a[at], heads.path) for k in range(len(heads.steps))
        ]
        with without_checkpoints():  # the cache has one entry per head
            margins = head_margins(
                records,
                (heads.X[e], heads.y[e]),
                (heads.fresh_X[e], heads.fresh_y[e]),
                key=jax.random.key(1000 * settings.seed + e),
                starts=settings.searches,
                steps=settings.climb,
            )
        return jax.tree.map(np.asarray, margins)

    return cached_pieces(
        (heads.path, heads.X),
        len(heads.X),
        lambda some: map(margins_of, some),
        like=lambda: HeadMargins._make([0] * len(HeadMargins._fields)),
    )


_descent = jax.jit(jax.vmap(head_descent_bounds))


def _formulas(
    heads: AuditedHeads, audit: Mapping[str, np.ndarray], settings: AuditSettings
) -> dict[str, np.ndarray]:
    """Papers 2, 3 and 5: bounds at every record, what they require at the last."""
    layers, norms = (heads.path.U, heads.path.W), heads.seen.norms
    moved = [((a - a[:, :1]) ** 2).sum(axis=tuple(range(2, a.ndim))) for a in layers]
    head = TrainedHead(
        n=heads.X.shape[1],
        T=heads.X.shape[2],
        d=heads.X.shape[3],
        R=heads.R,
        largest=float(np.abs(heads.X).max()),
        step_size=heads.rate,
        steps=np.maximum(heads.steps, 1.0),
        distance=np.sqrt(sum(moved)),
        norm=np.hypot(norms[..., 0], norms[..., 1]),
        risk=heads.seen.risk[..., 0],
        start_risk=heads.seen.risk[:, :1, 0],
        decoder=norms[..., 0],
        nuclear=np.linalg.norm(heads.path.W[:, :, 0], "nuc", axis=(-2, -1)),
    )
    shape = norms.shape[:2]
    flat = (np.broadcast_to(np.asarray(number, float), shape).ravel() for number in head)
    bounds = {k: np.asarray(v).reshape(shape) for k, v in _descent(TrainedHead(*flat)).items()}
    smallest = np.maximum(audit["margin_smallest"][:, 0], 0) / audit["margin_scale"]
    widths = [head_widths(head.n, number.item(), settings.delta) for number in smallest]
    sizes_by_head = []
    for e in range(len(heads.X)):
        last = head._replace(decoder=norms[e, -1, 0].item(), nuclear=head.nuclear[e, -1].item())
        s0, least = round(audit["land_s0"][e, -1].item()), audit["land_smallest"][e, -1].item()
        sizes = head_sample_sizes(last, s0, settings.tau, least, settings.gamma)
        sizes_by_head.append([sizes[name] for name in ASKED])
    return {
        **{f"bound_{slug}": bounds[name] for slug, name in DESCENT.items()},
        "width": np.array(
            [[float(number[v]) for v in ("printed", "corrected")] for number in widths]
        ),
        "asked": np.array(sizes_by_head),
    }


def _complexities(heads: AuditedHeads, delta: float) -> dict[str, np.ndarray]:
    """Paper 4: every bound at the last record, norms read off after training."""
    gap, needed = [], []
    for X, u, W in zip(heads.X, heads.path.U[:, -1, 0], heads.path.W[:, -1, 0], strict=True):
        table = compare_bounds(head_transformer(u, W), X, len(X), delta, model="plain", B_x=heads.R)
        entries = {entry.name: entry for entry in table.entries}
        gap.append([entries[name].gap for name in COMPARED])
        needed.append([entries[name].samples_until_nonvacuous for name in COMPARED])
    return {"gap": np.array(gap), "needed": np.array(needed)}
