r"""Guarantees on one or several models from one set of examples, each choice paid for.

Every model, and every group of examples of it, has a certificate of its own; all of them together
fail with probability delta, so that the reader may choose among them afterwards.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas._files.plain_file import printable
from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.improvement_limit import examples_to_decide, improvement_limit
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.certificates.checks import Check, checks_of
from attlas.certificates.measures import Limit, Measure
from attlas.certificates.predictions import Predictions, predictions_of, require_one_set
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError

DELTA = 0.05
SMALLEST_GROUP = 10
"""Fewest examples of a group: the certificate of a smaller one is vacuous, and costs the others."""


Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The path of a file, or paths of several."""


@dataclass(frozen=True)
class Guarantee:
    """The certificate of one model on all examples, or on a group of them.

    Attributes:
        group: empty for all examples.
        passes: whether the risk is certified to be at most the one that was asked for; None where
            none was.
    """

    model: str
    group: str
    bound: RiskBound
    passes: bool | None


@dataclass(frozen=True)
class MeasureGuarantee:
    """The certificate of one measure of a model, beside that of its mean loss.

    Attributes:
        group: empty for all examples.
        measure: its name.
        is_score: whether the limit is a lower one.
        share: probability that this certificate fails.
        passes: whether a score is certified to be at least the one that was asked for; None where
            none was, and for errors.
    """

    model: str
    group: str
    measure: str
    is_score: bool
    limit: Limit
    share: float
    passes: bool | None


@dataclass(frozen=True)
class Comparison:
    """A model beside the baseline on the same examples.

    Attributes:
        difference: mean loss of the baseline less the model's.
        low: lower limit of it: the model is better where it is above 0.
        high: upper limit of it: the model is worse where it is below 0.
        more_examples: about how many more would decide; 0 where it is decided, infinite where the
            mean losses are equal.
    """

    model: str
    baseline: str
    difference: float
    low: float
    high: float
    more_examples: float | int

    @property
    def verdict(self) -> str:
        """better, worse or undecided."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "undecided"


@dataclass(frozen=True)
class Certification:
    """All that is certified from one set of examples.

    Attributes:
        guarantees: of every model on all examples, then on its groups.
        comparisons: with the baseline; they hold together but for a delta of their own.
        measured: how the losses of each model were computed.
        checks: what was checked of the assumptions.
        delta: probability that any certificate fails, of earlier and later looks, too.
        share: part of delta that was used.
        at_most: the risk that was asked for, or None.
        in_order: whether models were tested one after the other until one failed.
        measures: of every model what was asked for beside its mean loss, then of its groups.
        at_least: the score that was asked for, or None.
    """

    guarantees: tuple[Guarantee, ...]
    comparisons: tuple[Comparison, ...]
    measured: Mapping[str, str]
    checks: tuple[Check, ...]
    delta: float
    share: float
    n: int
    at_most: float | None
    sequential: bool
    in_order: bool
    measures: tuple[MeasureGuarantee, ...] = ()
    at_least: float | None = None

    @property
    def models(self) -> tuple[Guarantee, ...]:
        """The guarantees on all examples."""
        return tuple(g for g in self.guarantees if not g.group)

    @property
    def passes(self) -> bool | None:
        """Whether a model, with all its groups, is certified at what was asked for."""
        if self.at_most is None and self.at_least is None:
            return None
        failed = {g.model for g in (*self.guarantees, *self.measures) if g.passes is False}
        return any(model.model not in failed for model in self.models)


def certify(
    losses: ArrayInput | Mapping[str, ArrayInput] | Predictions | Sequence[Predictions] | Files,
    *,
    delta: float = DELTA,
    at_most: float | None = None,
    baseline: str | None = None,
    sequential: bool = False,
    in_order: bool = False,
    groups: Sequence[str] = (),
    share: float = 1.0,
    at_least: float | None = None,
) -> Certification:
    r"""How often models are wrong on new examples, at most, with a guarantee.

    With K models, G groups and M further measures each has the share $\delta/(K(1+G)(1+M))$.

    Args:
        losses: in [0, 1], of shape [n], 1 for an error: of one model, or by name of several on the
            same examples; or paths of files of predictions, or what `read_predictions` returns.
        delta: probability that any certificate fails.
        at_most: the risk that a model shall have at most.
        baseline: the model with which each other is compared, at a further delta for all
            comparisons; the first of several by default.
        sequential: whether the examples are looked at as they come: certificates then hold after
            each of them at once.
        in_order: whether models are tested in order, each at the whole delta, until one fails; it
            needs `at_most` or `at_least`.
        groups: a text for each example.
        share: part of delta for this look at the examples, as `Ledger.look` says; below 1 models
            are not compared, since each number that is shown has its price.
        at_least: the F1 score that a model shall have in each class that is certified.

    Raises:
        UserError: if losses are outside [0, 1] or not of one set, or an option does not fit.

    Examples:
        >>> result = certify([0] * 970 + [1] * 30, at_most=0.05)
        >>> print(f"{result.models[0].bound.bound:.4f} {result.passes}")
        0.0405 True
    """
    several = _read(losses, groups)
    _require(several, delta, share, at_most, baseline)
    _require_risk(in_order, at_most, at_least)
    _require_scores(several, share, at_least)
    asked = _Asked(at_most, at_least, sequential)
    guarantees, measures = _all_guarantees(several, delta * share, asked, in_order)
    return Certification(
        guarantees=guarantees,
        comparisons=_comparisons(several, baseline, delta, sequential) if share == 1 else (),
        measured={model.name: model.measured for model in several},
        checks=checks_of(several),
        delta=delta,
        share=share,
        n=several[0].losses.size,
        at_most=at_most,
        sequential=sequential,
        in_order=in_order,
        measures=measures,
        at_least=at_least,
    )


class _Asked(NamedTuple):
    """What every certificate is asked for."""

    at_most: float | None
    at_least: float | None
    sequential: bool


def _read(losses: Any, groups: Sequence[str]) -> tuple[Predictions, ...]:
    if isinstance(losses, Predictions):
        return (losses,)
    if isinstance(losses, str | os.PathLike):
        return (_of_file(losses),)
    if isinstance(losses, Mapping):
        return tuple(
            predictions_of(str(name), values, groups=groups) for name, values in losses.items()
        )
    if isinstance(losses, Sequence) and losses and isinstance(losses[0], Predictions):
        return tuple(losses)
    if isinstance(losses, Sequence) and losses and isinstance(losses[0], str | os.PathLike):
        return tuple(_of_file(file) for file in losses)
    return (predictions_of("model", losses, groups=groups),)


def _of_file(file: str | os.PathLike[str]) -> Predictions:
    """The predictions in a file, whose columns have their usual names."""
    from attlas.certificates.prediction_file import read_predictions

    path = Path(file)
    if path.is_dir():
        name = printable(str(path))
        raise UserError(
            f"{name} is a folder, of a model perhaps: it answers by `at.certify(folder, "
            "text=FILE, labels=FILE)` or `images=FOLDER`; without these give a file of predictions"
        )
    return read_predictions(path)


def _require(
    several: Sequence[Predictions],
    delta: float,
    share: float,
    at_most: float | None,
    baseline: str | None,
) -> None:
    require_delta(delta)
    if not 0 < share <= 1:
        raise UserError(f"share = {share}: give a part of delta, above 0 and at most 1")
    if not several:
        raise UserError("no models: give losses of at least one")
    require_one_set(several)
    names = [model.name for model in several]
    if len(set(names)) < len(names):
        raise UserError(f"two models are called {max(names, key=names.count)}: name each apart")
    if at_most is not None and not 0 < at_most < 1:
        raise UserError(f"at_most = {at_most}: give a risk above 0 and below 1")
    if baseline is not None and baseline not in names:
        raise UserError(f"baseline '{baseline}' is no model: give one of {', '.join(names)[:200]}")


def _require_scores(several: Sequence[Predictions], share: float, at_least: float | None) -> None:
    measures = [measure for model in several for measure in model.measures]
    if measures and share < 1:
        raise UserError("a ledger prices counts of errors: certify F1 or calibration without it")
    if at_least is None:
        return
    if not 0 < at_least < 1:
        raise UserError(f"at_least = {at_least}: give an F1 score above 0 and below 1")
    if not any(measure.is_score for measure in measures):
        raise UserError("at_least is asked of F1 scores: name a class with --f-score")


def _require_risk(in_order: bool, at_most: float | None, at_least: float | None) -> None:
    if in_order and at_most is None and at_least is None:
        raise UserError("models in order are tested against a risk: give at_most, too")


def _groups(first: Predictions) -> dict[str, np.ndarray]:
    """Where the examples of each group are."""
    if not first.groups:
        return {}
    texts = np.array(first.groups)
    places = {str(name): np.flatnonzero(texts == name) for name in np.unique(texts)}
    small = [name for name, rows in places.items() if rows.size < SMALLEST_GROUP]
    if small:
        raise UserError(
            f"group '{small[0]:.40}' has {places[small[0]].size} examples, of at least "
            f"{SMALLEST_GROUP}: put small groups together"
        )
    return places


def _all_guarantees(
    several: Sequence[Predictions], delta: float, asked: _Asked, in_order: bool
) -> tuple[tuple[Guarantee, ...], tuple[MeasureGuarantee, ...]]:
    """Of every model at equal shares of delta, or in order until one is not certified."""
    by_group = _groups(several[0])
    sizes = [(1 + len(by_group)) * (1 + len(model.measures)) for model in several]
    count = max(sizes) if in_order else sum(sizes)
    part = math.nextafter(delta / count, 0) if count > 1 else delta
    guarantees: list[Guarantee] = []
    measures: list[MeasureGuarantee] = []
    for model in several:
        rows = {"": np.arange(model.losses.size), **by_group}
        means = [_guarantee(model, group, rows[group], part, asked) for group in rows]
        others = [
            _measured(model.name, measure, group, rows[group], part, asked)
            for group in rows
            for measure in model.measures
        ]
        guarantees += means
        measures += others
        if in_order and any(each.passes is False for each in (*means, *others)):
            break
    return tuple(guarantees), tuple(measures)


def _guarantee(
    model: Predictions, group: str, rows: np.ndarray, share: float, asked: _Asked
) -> Guarantee:
    bound = mean_bound(model.losses[rows], share, anytime=asked.sequential)
    passes = None if asked.at_most is None else bool(bound.bound <= asked.at_most)
    return Guarantee(model.name, group, bound, passes)


def _measured(
    model: str, measure: Measure, group: str, rows: np.ndarray, share: float, asked: _Asked
) -> MeasureGuarantee:
    limit = measure.limit(rows, share, asked.sequential)
    if limit.examples == 0:
        raise UserError(
            f"{model}: group '{group:.40}' has no example for {measure.name}: put groups together"
        )
    floor = asked.at_least if measure.is_score else None
    passes = None if floor is None else bool(limit.limit >= floor)
    return MeasureGuarantee(model, group, measure.name, measure.is_score, limit, share, passes)


def _comparisons(
    several: Sequence[Predictions], baseline: str | None, delta: float, sequential: bool
) -> tuple[Comparison, ...]:
    """Every other model beside the baseline, both sides of each difference paid for."""
    names = [model.name for model in several]
    base = several[names.index(baseline) if baseline else 0]
    others = [model for model in several if model is not base]
    if not others:
        return ()
    share = math.nextafter(delta / (2 * len(others)), 0)
    return tuple(_compared(other, base, share, sequential) for other in others)


def _compared(model: Predictions, base: Predictions, share: float, sequential: bool) -> Comparison:
    X, Y = base.losses, model.losses
    low = improvement_limit(X, Y, share, anytime=sequential)
    high = -improvement_limit(Y, X, share, anytime=sequential)
    is_decided = low > 0 or high < 0
    needed = examples_to_decide(X, Y, share)
    # Never none where nothing is decided: the estimate knows no third moments.
    more = 0.0 if is_decided else max(needed - X.size, 0.1 * X.size)
    return Comparison(
        model=model.name,
        baseline=base.name,
        difference=float((X - Y).mean()),
        low=low,
        high=high,
        more_examples=math.ceil(more) if math.isfinite(more) else math.inf,
    )
