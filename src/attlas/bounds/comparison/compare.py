r"""All bounds on one trained Transformer, side by side, each with the reason for its number.

A bound holds for a class whose norms are fixed before the data are seen. The norms here are those
of the weights, so that a union bound over grids of norms is part of every gap and shown
as its own term; `norms="fixed"` leaves it out. papers/trauger2023sequence/proofs/union.md.

Examples:
    With examples, the bounds that any sceptic would use stand beside the norm-based ones:

    >>> from attlas.bounds.comparison.transformer_weights import Head
    >>> weights = TransformerWeights(((Head(*[np.eye(2) / 8] * 3),),), np.ones(2) / 2)
    >>> X = np.random.default_rng(0).normal(size=(3000, 1, 2))
    >>> y = np.sign(X[:, 0].sum(axis=1))
    >>> evaluation = Evaluation(
    ...     lambda weights, X: np.sign(X[:, 0] @ weights.readout),
    ...     (X[:2000], y[:2000]), (X[2000:], y[2000:]),
    ... )
    >>> table = compare_bounds(weights, X[:2000], 2000, 0.05, evaluation=evaluation)
    >>> [(e.name, round(e.gap, 3), e.vacuous) for e in table.entries[-2:]]
    [('compression, exact binomial', 0.061, False), ('exact binomial, held-out', 0.003, False)]
    >>> table.true_gap, table.entries[-2].samples_until_nonvacuous
    (0.0, 4.0)
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import jax
import numpy as np

from attlas.bounds.comparison.bound_table import BoundTable, Inputs, NormBound, least_samples
from attlas.bounds.comparison.certificate_entries import Certificates, certificate_entries
from attlas.bounds.comparison.compare_inputs import check_comparison, measure_inputs
from attlas.bounds.comparison.comparison import Comparison, Entry
from attlas.bounds.comparison.evaluation import Evaluation, evaluate
from attlas.bounds.comparison.normalised import NORMALISED, normalised
from attlas.bounds.comparison.transformer_weights import TransformerWeights, read_weights
from attlas.bounds.comparison.unnormalised import PLAIN, unnormalised
from attlas.bounds.comparison.weight_norms import WeightNorms, weight_norms
from attlas.bounds.covering.norm_grid import RESOLUTIONS
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.bounds.generalisation.samples_until_nonvacuous import samples_until_nonvacuous
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError

Model = Literal["normalised", "plain"]
Norms = Literal["measured", "fixed"]
BOUNDS: dict[Model, Sequence[NormBound]] = {"normalised": NORMALISED, "plain": PLAIN}
_WITHOUT = (
    "a model with residual connections, norms, feedforward units, biases, positions or masks is "
    "another function"
)
_ABOUT = {
    "normalised": "the heads alone, layer after layer, each row projected on the unit ball: "
    + _WITHOUT,
    "plain": f"the heads of one layer alone: {_WITHOUT}",
}


class _Loss(NamedTuple):
    """What turns a complexity into a gap."""

    slope: float
    range: float
    delta: float

    def tail(self, m: np.ndarray, union_cost: np.ndarray | float = 0.0) -> np.ndarray:
        """The gap of a class without complexity, at delta e^-union_cost."""
        return np.asarray(generalisation_gap(0.0, m, self.delta, self.range, union_cost=union_cost))


class _Gaps(NamedTuple):
    """The terms of the gap of every row."""

    rademacher: np.ndarray
    complexity: np.ndarray
    confidence: np.ndarray
    union: np.ndarray
    union_cost: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Their sum."""
        return self.complexity + self.confidence + self.union


def _gaps(rows: BoundTable, loss: _Loss, m: np.ndarray) -> _Gaps:
    """All terms, each row at its own m; grids after the first are paid for."""
    R = rows.values(m)
    complexity, confidence = 2 * loss.slope * R[0], loss.tail(m)
    if len(R) == 1:
        none = np.zeros(len(m))
        return _Gaps(R[0], complexity, confidence, none, none)
    bound = np.array([bound.is_bound for bound in rows.bounds])
    # all entries on all grids hold at once, so that the best may be picked afterwards
    union_cost = rows.union_costs[1:] + math.log(int(bound.sum()) * len(RESOLUTIONS))
    gaps = 2 * loss.slope * R[1:] + loss.tail(m[None, :], union_cost)
    pick = np.argmin(gaps, axis=0), np.arange(len(m))
    union = np.where(bound, gaps[pick] - (complexity + confidence), 0.0)
    return _Gaps(R[0], complexity, confidence, union, np.where(bound, union_cost[pick], 0.0))


def _dominant(rows: BoundTable, row: int, gaps: _Gaps) -> str:
    """The largest term, and the part after the complexity."""
    terms = {"complexity": gaps.complexity, "confidence": gaps.confidence, "union": gaps.union}
    name = max(terms, key=lambda term: terms[term][row])
    part = int(np.argmax(rows.shares[row]))
    share = float(rows.shares[row, part])
    text = f"{name} ({100 * terms[name][row] / gaps.total[row]:.0f} % of the gap)"
    return f"{text}, in it {rows.part_names[part]} ({100 * share:.0f} %)" if share > 0 else text


def _useful(rows: BoundTable, loss: _Loss, m: np.ndarray) -> np.ndarray:
    """Whether a row is below the range of the loss and below the largest output."""
    gaps = _gaps(rows, loss, m)
    return (gaps.total < loss.range) & _informed(gaps)


def _informed(gaps: _Gaps) -> np.ndarray:
    """Whether a complexity is below the trivial one, which the first row is."""
    # a chain that stops at its radius gives the radius but for rounding
    below = gaps.rademacher < gaps.rademacher[0] * (1 - 1e-9)
    return np.concatenate([[True], below[1:]])


def _story(rows: BoundTable, gaps: _Gaps, row: int, loss: _Loss, m: int, needed: float) -> str:
    """Where a number comes from, what it is made of and what would have to change."""
    bound, dominant = rows.bounds[row], _dominant(rows, row, gaps)
    text = f"{rows.reasons[row]}; constants: {bound.constants}; "
    if not bound.is_bound:
        return f"{text}no bound: the constant c of the source is unknown and 1 stands for it"
    text += f"gap {gaps.total[row]:.3g} = 2 L R {gaps.complexity[row]:.3g}"
    text += f" + confidence {gaps.confidence[row]:.3g} at delta = {loss.delta:g}, m = {m}"
    if gaps.union_cost[row] > 0:
        text += f" + union bound over norm grids {gaps.union[row]:.3g}"
        text += f" ({gaps.union_cost[row]:.0f} nats, as norms were measured after training)"
    else:
        text += ", for norms fixed before the data were seen"
    text += f"; largest: {dominant}; "
    short = []
    if not gaps.total[row] < loss.range:
        short.append(f"not below the range {loss.range:g} of the loss")
    if not _informed(gaps)[row]:
        short.append("no better than the largest output")
    if not short:
        return f"{text}non-vacuous from m = {needed:.3g}"
    change = "vacuous for every m: shrink the norms"
    if math.isfinite(needed):
        change = f"non-vacuous from m = {needed:.3g}, or with smaller norms"
    return f"{text}{' and '.join(short)}; {change}"


def _entries(rows: BoundTable, loss: _Loss, m: int, least: int) -> tuple[Entry, ...]:
    """The table; the samples until a bound is non-vacuous are searched for on first access."""
    count = len(rows.bounds)
    gaps = _gaps(rows, loss, np.full(count, float(m)))

    @cache
    def needed() -> np.ndarray:
        with jax.enable_x64(True):
            return samples_until_nonvacuous(lambda at: _useful(rows, loss, at), least, count)

    def entry(row: int) -> Entry:
        bound = rows.bounds[row]
        rademacher, complexity, confidence, union, union_cost = (float(term[row]) for term in gaps)
        return Entry(
            bound.label,
            rademacher,
            gap=float(gaps.total[row]),
            trivial=loss.range,
            is_bound=bound.is_bound,
            constants=bound.constants,
            log10_samples=float(rows.log10_samples[row]),
            complexity=complexity,
            confidence=confidence,
            union=union,
            union_cost=union_cost,
            dominant=_dominant(rows, row, gaps) if bound.is_bound else "the unknown constant",
            search=lambda: float(needed()[row]) if bound.is_bound else math.nan,
            story=lambda samples: _story(rows, gaps, row, loss, m, samples),
        )

    return tuple(entry(row) for row in range(count))


def _grids(weights: TransformerWeights, norms: Norms) -> list[tuple[WeightNorms, int | None]]:
    """The norms of the weights, and those of the classes that are paid for."""
    measured = weight_norms(weights)
    if norms == "fixed":
        return [(measured, None)]
    return [(measured, None), *((measured.rounded(s), s) for s in RESOLUTIONS)]


def _rows(
    grids: list[tuple[WeightNorms, int | None]],
    tokens: Inputs,
    m: int,
    model: Model,
    lipschitz: float,
    loss_range: float,
) -> BoundTable:
    """The table of the model."""
    if model == "plain":
        return unnormalised(grids, tokens, m, lipschitz)
    return normalised(grids, tokens, m, lipschitz, loss_range)


def _certificates(
    weights: TransformerWeights,
    m: int,
    delta: float,
    evaluation: Evaluation | None,
    arguments: tuple[Sequence[RiskBound], RiskBound | None, float | None],
) -> Certificates:
    """The bounds passed beside the weights, with those of an evaluation."""
    certificates, held_out, training_risk = arguments
    if evaluation is None:
        return Certificates(tuple(certificates), held_out, training_risk)
    if held_out is not None or training_risk is not None:
        raise UserError("evaluation counts the errors: leave out held_out and training_risk")
    computed = evaluate(weights, evaluation, m, delta)
    return computed._replace(bounds=(*certificates, *computed.bounds))


def compare_bounds(
    weights: TransformerWeights,
    inputs: ArrayInput,
    m: int,
    delta: float,
    *,
    model: Model = "normalised",
    B_x: float | None = None,
    lipschitz: float = 1.0,
    loss_lipschitz: float = 1.0,
    loss_range: float = 1.0,
    norms: Norms = "measured",
    certificates: Sequence[RiskBound] = (),
    held_out: RiskBound | None = None,
    training_risk: float | None = None,
    evaluation: Evaluation | None = None,
) -> Comparison:
    r"""Every bound of this library on one Transformer of heads alone.

    $${\rm gap}=2L_\ell R+3c\sqrt{\ln(2/\delta)/(2m)}+\text{union over norm grids}$$

    Args:
        weights: lists or arrays of NumPy, JAX or torch, as the inputs. A model with residual
            connections, norms, feedforward units, biases, positions or masks is another function.
        inputs: all m samples, (n, T, d), for T and the norms of tokens; fewer if B_x is passed.
        delta: probability that some norm-based entry of the table fails, in (0, 1).
        model: "normalised" is section 2.6; "plain" the one layer of Theorem 4.1.
        B_x: bound on the norm of a token known in advance; measured if None.
        lipschitz: constant L_sigma of the activation.
        loss_lipschitz: constant of the loss in the output; 2, of cross-entropy, for K readout rows.
        loss_range: c, length of the interval of the losses.
        norms: "measured" after training, or "fixed" before it, as by projection on their balls.
        certificates: bounds on losses in [0, 1], such as those of `compression_bound`.
        held_out: the bound of `held_out_bound` for a test set.
        training_risk: mean loss on the training set, for the true gap beside a held-out set.
        evaluation: the model on its examples, instead of these two; adds a compression bound.

    Source: Theorems 4.1, 4.2 and 5.1 of trauger2023sequence; constants derived.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head
        >>> weights = TransformerWeights(((Head(*[np.eye(2) / 8] * 3),),), np.ones(2) / 2)
        >>> compare_bounds(weights, np.eye(2)[None], 10**6, 0.05).best.vacuous
        False
    """
    weights = read_weights(weights)
    constants = {"lipschitz": lipschitz, "loss_lipschitz": loss_lipschitz, "loss_range": loss_range}
    check_comparison(weights, m, delta, model, norms, constants)
    least = least_samples(BOUNDS[model], weights, m)
    loss = _Loss(loss_lipschitz if weights.readout.ndim == 1 else 1.0, loss_range, delta)
    risks = _certificates(weights, m, delta, evaluation, (certificates, held_out, training_risk))
    with jax.enable_x64(True):
        tokens = measure_inputs(inputs, weights.readout.shape[-1], B_x, m)
        rows = _rows(_grids(weights, norms), tokens, m, model, lipschitz, loss_range)
        entries = _entries(rows, loss, m, least) + certificate_entries(risks, loss_range)
    about = tokens.l2, risks.true_gap, risks.shares(delta), _ABOUT[model]
    return Comparison(entries, m, risks.delta(delta), *about)
