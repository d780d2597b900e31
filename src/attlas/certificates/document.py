"""A certification as sentences, as rows of a table and as JSON with a published schema."""

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from attlas.certificates.certify import Certification, Guarantee, MeasureGuarantee
from attlas.core.errors import refuse_misfits, refuse_unreadable

SCHEMA_VERSION = 1


@refuse_unreadable
def certification_json(result: Certification) -> dict[str, Any]:
    """The certification as a JSON document, which `certification_schema` describes.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> document = certification_json(certify([0.0] * 59 + [1.0]))
        >>> document["guarantees"][0]["empirical"]
        0.016666666666666666
    """
    return {
        "schema": SCHEMA_VERSION,
        "delta": result.delta,
        "share": result.share,
        "examples": result.n,
        "at_most": result.at_most,
        "at_least": result.at_least,
        "passes": result.passes,
        "sequential": result.sequential,
        "in_order": result.in_order,
        "guarantees": [_guarantee(guarantee, result) for guarantee in result.guarantees],
        "measures": [_measure(measured) for measured in result.measures],
        "comparisons": [
            {
                "model": compared.model,
                "baseline": compared.baseline,
                "difference": compared.difference,
                "low": compared.low,
                "high": compared.high,
                "verdict": compared.verdict,
                "more_examples": compared.more_examples
                if math.isfinite(compared.more_examples)
                else None,
            }
            for compared in result.comparisons
        ],
        "checks": [check._asdict() for check in result.checks],
        "sentences": sentences(result),
    }


def _guarantee(guarantee: Guarantee, result: Certification) -> dict[str, Any]:
    bound = guarantee.bound
    return {
        "model": guarantee.model,
        "group": guarantee.group or None,
        "measured": result.measured[guarantee.model],
        "method": bound.name,
        "examples": bound.n,
        "empirical": bound.empirical,
        "bound": bound.bound,
        "share": bound.delta,
        "passes": guarantee.passes,
        "assumed": [condition.text for condition in bound.conditions if not condition.checked],
        "checked": [condition.text for condition in bound.conditions if condition.checked],
    }


def _measure(measured: MeasureGuarantee) -> dict[str, Any]:
    limit = measured.limit
    return {
        "model": measured.model,
        "group": measured.group or None,
        "measure": measured.measure,
        "side": _side(measured).replace(" ", "_"),
        "limit": limit.limit,
        "empirical": limit.measured,
        "noise": limit.noise,
        "examples": limit.examples,
        "method": limit.method,
        "share": measured.share,
        "passes": measured.passes,
    }


def _side(measured: MeasureGuarantee) -> str:
    return "at least" if measured.is_score else "at most"


@cache
def certification_schema() -> dict[str, Any]:
    """The JSON schema of `certification_json`.

    Examples:
        >>> certification_schema()["properties"]["schema"]
        {'const': 1}
    """
    return packaged_schema("certification")


def packaged_schema(name: str) -> dict[str, Any]:
    """A JSON schema that lies beside this module.

    Examples:
        >>> packaged_schema("stream")["type"]
        'object'
    """
    file = resources.files("attlas.certificates") / f"{name}.schema.json"
    return json.loads(file.read_text(encoding="utf-8"))


@refuse_misfits
def guarantee_rows(result: Certification) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and cells of the table of guarantees.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> guarantee_rows(certify([0.0] * 59 + [1.0]))[1]
        [('model', '7.67 %', '1.67 %', '60')]
    """
    headings = ["model", "at most", "measured", "examples"]
    rows = [
        [guarantee.model, percent(guarantee.bound.bound, up=True),
         percent(guarantee.bound.empirical), str(guarantee.bound.n)]
        for guarantee in result.guarantees
    ]  # fmt: skip
    asked = "" if result.at_most is None else f"at most {level(result.at_most)}?"
    return _with_columns(headings, rows, result.guarantees, asked)


@refuse_misfits
def measure_rows(result: Certification) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and cells of the table of measures beside the mean loss.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> from attlas.certificates.measures import Brier
        >>> from attlas.certificates.predictions import predictions_of
        >>> import numpy as np
        >>> model = predictions_of("mine", [0.0] * 60, measures=[Brier(np.tile([0.1, 0.2], 30))])
        >>> measure_rows(certify(model))[1]
        [('mine', 'Brier score', 'at most 21.5 %', '15.0 %', '60')]
    """
    headings = ["model", "measure", "guaranteed", "measured", "examples"]
    rows = [
        [measured.model, measured.measure, _guaranteed(measured),
         percent(measured.limit.measured), str(measured.limit.examples)]
        for measured in result.measures
    ]  # fmt: skip
    asked = "" if result.at_least is None else f"at least {level(result.at_least)}?"
    return _with_columns(headings, rows, result.measures, asked)


def _guaranteed(measured: MeasureGuarantee) -> str:
    """The limit with its side."""
    return f"{_side(measured)} {percent(measured.limit.limit, up=not measured.is_score)}"


def _with_columns(
    headings: list[str],
    rows: list[list[str]],
    certificates: Sequence[Guarantee | MeasureGuarantee],
    asked: str,
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A table with its groups where it has any, and with the verdicts where something was asked."""
    if any(certificate.group for certificate in certificates):
        headings.insert(1, "group")
        for cells, certificate in zip(rows, certificates, strict=True):
            cells.insert(1, certificate.group or "all")
    if asked:
        headings.append(asked)
        words = {None: "", True: "certified", False: "not certified"}
        for cells, certificate in zip(rows, certificates, strict=True):
            cells.append(words[certificate.passes])
    return tuple(headings), [tuple(cells) for cells in rows]


@refuse_unreadable
def comparison_rows(result: Certification) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and cells of the table of comparisons.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> losses = {"old": [1.0, 0, 1, 0] * 100, "new": [0.0, 0, 1, 0] * 100}
        >>> comparison_rows(certify(losses))[1]
        [('new', 'better', '25.0 %', '19.4 %', '31.4 %', 'none')]
    """
    rows = [
        (
            compared.model,
            compared.verdict,
            percent(compared.difference),
            percent(compared.low, up=False),
            percent(compared.high, up=True),
            "none" if compared.more_examples == 0 else _examples(compared.more_examples),
        )
        for compared in result.comparisons
    ]
    name = result.comparisons[0].baseline if result.comparisons else ""
    return ("model", f"than {name}", "better by", "at least", "at most", "more examples"), rows


@refuse_unreadable
def sentences(result: Certification) -> list[str]:
    """What is guaranteed, at which price, and under which assumptions.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> sentences(certify([0.0] * 59 + [1.0]))[0][41:]
        "the mean loss of 'model' on new ones is at most 7.67 %."
    """
    models = result.models
    sure = f"With probability {level(1 - result.delta)} over the examples"
    always = " after every number of examples at once" if result.sequential else ""
    if len(models) == 1:
        one = models[0]
        lines = [
            f"{sure}, the mean loss of '{one.model}' on new ones is at most "
            f"{percent(one.bound.bound, up=True)}{always}."
        ]
    else:
        lines = [
            f"{sure}, the mean loss of each of the {len(models)} models on new ones is at most its "
            f"bound{always}: choose any of them, the choice is paid for."
        ]
    share = result.guarantees[0].bound.delta
    count = len(result.guarantees) + len(result.measures)
    lines += _of_measures(result)
    if count > 1 and not result.in_order:
        lines.append(
            f"Each of the {count} certificates fails with probability at most "
            f"{percent(share)}, all together at most {level(result.delta * result.share)}."
        )
    if result.share < 1:
        lines.append(
            f"All looks at these examples together fail with probability at most "
            f"{level(result.delta)}; this look has the share {result.share:.2g} of it, whatever "
            "was learnt from the looks before."
        )
    if result.in_order:
        lines.append(
            "The models were tested in the order given, each at the whole probability of failure, "
            "until the first that is not certified; no later one was tested."
        )
    if result.comparisons:
        lines.append(
            f"The comparisons all hold together but for a further probability of "
            f"{level(result.delta)}; they are paired, example by example."
        )
    assumed = {c.text: None for g in result.guarantees for c in g.bound.conditions if not c.checked}
    lines.append(f"Assumed, and not checked: {'; '.join(assumed)}.")
    checks = [("Checked" if check.holds else "Warning", check.text) for check in result.checks]
    return [*lines, *(f"{word}: {text}." for word, text in checks)]


def _of_measures(result: Certification) -> list[str]:
    """What the measures on all examples are, and what calibrated probabilities would measure."""
    of_all = [measured for measured in result.measures if not measured.group]
    lines = [
        f"At once, the {measured.measure} of '{measured.model}' is {_guaranteed(measured)}."
        for measured in of_all
    ]
    noises = {measured.model: measured.limit.noise for measured in of_all if measured.limit.noise}
    lines += [
        f"A calibration error is measured too large on average: with right probabilities '{model}' "
        f"would still measure about {percent(noise)}."
        for model, noise in noises.items()
    ]
    return lines


def percent(share: float, *, up: bool | None = None) -> str:
    """A share as per cent with three significant digits.

    Args:
        up: whether the last digit is rounded up or down; to nearest when None.

    Examples:
        >>> percent(0.0405012), percent(0.0405012, up=True), percent(0.0), percent(1.0, up=True)
        ('4.05 %', '4.06 %', '0 %', '100 %')
    """
    value = 100 * share
    if value == 0:
        return "0 %"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    scale = 10.0**digits
    if up is not None:
        # A number that has these digits stays the number that it is.
        near = round(value * scale)
        exact = math.isclose(value * scale, near, rel_tol=1e-12)
        value = (near if exact else (math.ceil if up else math.floor)(value * scale)) / scale
    return f"{value:.{min(digits, 9)}f} %"


def level(share: float) -> str:
    """A level that somebody chose, as per cent without further digits.

    Examples:
        >>> level(0.05), level(0.95), level(0.05 / 6)
        ('5 %', '95 %', '0.833333 %')
    """
    return f"{100 * share:g} %"


def _examples(count: float) -> str:
    if math.isinf(count):
        return "no number"
    return f"about {float(f'{count:.1e}'):,.0f}"
