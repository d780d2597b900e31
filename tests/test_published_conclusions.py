"""What READMEs and the page of findings conclude is what published records and claims say."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from concluding_sentences import concluding_words
from perturbed_records import (
    further_perturbations,
    negated,
    one_at_a_time,
    perturbations,
    published,
)

from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.experiments.find import one_named
from attlas.verify.registry import find_claims

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"!\[[^]]*\]\([^)]*\)")
_SLOPE = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")

Values = Mapping[str, Any]
Predicate = Callable[[Values], bool]


class Says(NamedTuple):
    """A predicate on the values of an experiment's answer, and claims with their outcomes."""

    experiment: str = ""
    holds: Predicate = bool
    supported: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()


def numbers_of(text: str) -> list[list[float]]:
    """Estimate and interval of each slope in a text."""
    return [[float(x) for x in slope] for slope in _SLOPE.findall(text)]


def _flattens(values: Values) -> bool:
    first, last = numbers_of(values["power"])
    return values["hurts"] and "test" in values["curved"] and first[0] > last[0]


def _hidden_by_the_rule(values: Values) -> bool:
    (_, low, high), *_ = numbers_of(values["rule_power"])
    return values["best"] == 2 and values["hurts"] and low <= 0 <= high


def _is_a_norm(values: Values) -> bool:
    share, norm = (float(values[name]["trained"]) for name in ("share", "relative"))
    paper = float(values["paper"])
    return values["reproduced"] and abs(norm - paper) < abs(share - paper)


def _every_p(values: Values) -> bool:
    return values["own"] == values["total"]


def _saves(values: Values) -> bool:
    return values["clear"] and bool(values["to_ratio"]) and not values["within"]


def _gains_by_averaging(values: Values) -> bool:
    points = float(values["plain"].split(" ")[0])
    return bool(values["first"]) and not values["attending"] and 0.5 < points < 1.5


def claims(paper: str, supported: str = "", violated: str = "") -> Says:
    """Claims of one paper, by their slugs, that must be supported, or violated."""
    return Says(
        supported=tuple(f"{paper}/{slug}" for slug in supported.split()),
        violated=tuple(f"{paper}/{slug}" for slug in violated.split()),
    )


def is_true(name: str) -> Predicate:
    """Whether a value of an answer is true, and not empty or 0."""
    return lambda values: bool(values[name])


def is_false(name: str) -> Predicate:
    """Whether a value of an answer is false, empty or 0."""
    return lambda values: not values[name]


_LARGER_SIGNAL = claims("deora2023optimization", "margin-order-condition", "margin-order")
_EIGENVALUE = claims("liu2021analyzing", "lemma-1-1", "lemma-1-1-printed")
_SAMPLE = claims(
    "trauger2023sequence", "theorem-5-1-worst-sample theorem-5-1-contraction", "theorem-5-1-printed"
)
_CURVATURE = claims(
    "deora2023optimization", "proposition-1-gradient proposition-1-hessian corollary-1-3"
)
_WIDTH = claims("gu2024exploring", "theorem-4-2 corollary-4-3 theorem-4-2-width")
_NORMS = claims(
    "trauger2023sequence",
    "theorem-4-1 lemma-3-3 lemma-3-4",
    "theorem-4-1-transposes lemma-3-4-printed lemma-3-3-rows",
)
_VACUOUS = claims("gu2024exploring", "theorem-6-6-any-width theorem-6-6-vacuous")
README = {
    "for each of the 3 exponents that we ran": Says("direction", _every_p),
    "In each the distance to the max-margin": Says("direction", _every_p),
    "end above it": Says("direction", _every_p),
    "The distance falls faster than the rates": Says(
        "rates", is_true("faster"), ("julistiono2024optimizing/lemma-29",)
    ),
    "The printed bounds on the loss surface hold": _CURVATURE,
    "the test loss was lowest with 2 heads and rose": Says("heads", _hidden_by_the_rule),
    "They do, at widths far below the one demanded": _WIDTH,
    "is larger than the error of always predicting zero": _VACUOUS,
    "Theorem 4.1 holds with the norms that its proof uses": _NORMS,
    "On the paper's task every bound is vacuous": Says("sparse_majority", is_false("below")),
    "not its square": Says("sample_complexity", _saves),
    "sparsity alone saved nothing": Says("sample_complexity", is_false("saves_moving")),
}
FINDINGS = {
    "ends at the max-margin solution of that same p": Says("direction", _every_p),
    "Training gets there faster": Says("rates", is_true("faster")),
    "hold as upper bounds": Says(supported=("julistiono2024optimizing/lemma-29",)),
    "can change which token": Says("joint", lambda values: values["distinct"] > 1),
    "leads to another solution": Says(
        "factored", lambda v: v["found"] == {"factored": "nuclear", "merged": "Frobenius"}
    ),
    "More heads raised": Says("heads", is_true("hurts")),
    "rose from there, ever more slowly": Says("heads", _flattens),
    "Training moves attention onto": Says("attention", is_true("mostly")),
    "ended with more attention": Says("attention", is_true("mostly")),
    "Wide softmax and ReLU networks train at": Says(
        "convergence", lambda values: set(values["near"]) == {"softmax", "ReLU"}
    ),
    "is not the best for samples": Says("score_samples", is_true("later")),
    "No bound sees the gap": Says("sparse_majority", is_false("below")),
    "every bound was vacuous": Says("sparse_majority", is_false("below")),
    "the smallest, that of parameter counting": Says(
        "sparse_majority", lambda values: values["name"] == "parameter counting"
    ),
    "The gap grew with": Says("sparse_majority", is_true("grows")),
    "the shortest length carries": Says("sparse_majority", is_false("grows_later")),
    "does not grow with the length": Says("rademacher_length", is_false("grew")),
    "Small weights make a bound useful": Says("norm_projection", is_true("certified")),
    "is certified without a test set": Says("norm_projection", is_true("certified")),
    "is certified by its bits": Says("tiny_adders", is_false("vacuous")),
    "certified to be wrong on": Says("tiny_adders", is_false("vacuous")),
    "as a held-out test certifies": Says("tiny_adders", is_false("vacuous")),
    "is certified along its own": Says("language_model", is_false("vacuous")),
    "is certified at": Says("language_model", is_false("vacuous")),
    "saves samples, but not their square": Says("sample_complexity", _saves),
    "times fewer samples": Says("sample_complexity", _saves),
    "was not reached where": Says("sample_complexity", is_false("within")),
    "sparsity alone saved nothing": Says("sample_complexity", is_false("saves_moving")),
    "Without attention an error remains": Says("inconsistency", is_true("narrow")),
    "does not exclude zero": Says("inconsistency", is_false("floor")),
    "Not every stationary point": Says("landscape", is_true("large")),
    "had errors above": Says("landscape", is_true("large")),
    "attention nothing more": Says("reviews", _gains_by_averaging),
    "points better than a plain network": Says("reviews", _gains_by_averaging),
    "is a norm, not a share": Says("concentration", _is_a_norm),
    "is false with the same sample": _SAMPLE,
    "our counterexample does not contradict it": _SAMPLE,
    "holds with twice the number of": _SAMPLE,
    "a sample in which each word occurs once exceeds it": _SAMPLE,
    "reverses the order of two margins": _LARGER_SIGNAL,
    "holds for signals up to an exact threshold": _LARGER_SIGNAL,
    "fails beyond the threshold": _LARGER_SIGNAL,
    "needs the smallest eigenvalue": _EIGENVALUE,
    "holds where the smallest eigenvalue": _EIGENVALUE,
}
_SELECTION = partial(claims, "julistiono2024optimizing")
_HEADS = partial(claims, "deora2023optimization")
_NETWORKS = partial(claims, "gu2024exploring")
_LENGTH = partial(claims, "trauger2023sequence")
_LANDSCAPE = partial(claims, "liu2021analyzing")
PAPERS = {
    "attlas_bounds": {
        "are certified below guessing": Says("digit_patches", is_false("vacuous")),
        "certifies a small layer": Says("margin_ledger", is_false("vacuous")),
        "stays above guessing": Says("measured_crossing", is_false("crosses")),
        "norms certify nothing": Says("tiny_adders", is_true("norms_vacuous")),
        "no narrower limit has its level": claims("attlas_bounds", "exact-limits-attained"),
    },
    "deora2023optimization": {
        "hold as printed": _CURVATURE,
        "without the dimension": _HEADS("hessian-sharp corollary-1-3-sharp"),
        "One randomised step": _HEADS("proposition-2-p3-every-head"),
        "a bound that is not vacuous": _HEADS("theorem-1-informative"),
        "more heads did not lower": Says("heads", is_false("helps")),
        "holds for small signals": _LARGER_SIGNAL,
        "beyond it the order is false": _LARGER_SIGNAL,
        "Lemma 2 holds with": _HEADS("lemma-2", "lemma-2-printed"),
    },
    "gu2024exploring": {
        "The rate holds": _WIDTH,
        "The width that Theorem 4.2 asks for": _WIDTH,
        "Lemma 5.1 on the change": _NETWORKS("lemma-5-1-frobenius lemma-5-1-sharp"),
        "Theorem F.2 holds with": _NETWORKS("theorem-f-2-kernels", "theorem-f-2-units"),
        "needs no least eigenvalue": _NETWORKS("theorem-f-2-without-lambda"),
        "holds and is vacuous": _VACUOUS,
        "In a fixed dimension": _NETWORKS("smallest-eigenvalue-falls theorem-6-6-vacuous"),
    },
    "julistiono2024optimizing": {
        "The direction holds": Says(
            "direction", _every_p, ("julistiono2024optimizing/direction-theorem",)
        ),
        "The rates hold as upper bounds": Says("rates", is_true("faster")),
        "we prove the exact order": _SELECTION("lag-and-memory"),
        "No step is small enough": _SELECTION(violated="lemma-24-gap"),
        "The best constants widen": _SELECTION("lemma-13-l1-sharp lemma-13-sphere"),
    },
    "liu2021analyzing": {
        "saves the factor": Says("sample_complexity", _saves),
        "it saves no parameters": Says("sample_complexity", is_false("saves_moving")),
        "Theorem 7 and the eigenvalue": _LANDSCAPE("theorem-7 theorem-5-eigenvalue"),
        "The error of a stationary point": _LANDSCAPE("theorem-1-consistency"),
        "keep large errors": _LANDSCAPE("zero-point theorem-1-embedded assumption-a3-at-zero"),
        "Lemma 1.1 holds with": _EIGENVALUE,
        "Theorem 3 holds in our": _LANDSCAPE("theorem-3-corrected", "theorem-3"),
        "without it, it fails": _LANDSCAPE(violated="theorem-3"),
        "Theorem 4 holds for": _LANDSCAPE("theorem-4-with-biases", "theorem-4"),
    },
    "trauger2023sequence": {
        "The idea holds": _LENGTH("theorem-4-1 corollary-4-1-1"),
        "does not grow with": Says("rademacher_length", is_false("grew")),
        "No one orientation": _NORMS,
        "With norms of columns": _NORMS,
        "Each holds with the norms": _NORMS,
        "hold in another form": _LENGTH("theorem-4-1-closed-form theorem-5-1-worst-sample"),
        "The first holds from": _LENGTH("theorem-4-1-closed-form"),
        "it can be negative": _LENGTH(violated="theorem-4-1-negative"),
        "agrees with all our instances": _SAMPLE,
        "a factor that suffices": _SAMPLE,
        "it costs a factor": _LENGTH("dense-weights-entropy"),
        "the gap grows with": Says("sparse_majority", is_true("grows")),
        "All bounds are vacuous": Says("sparse_majority", is_false("below")),
    },
}
PAGES = {
    "README.md": README,
    "docs/log/findings.md": FINDINGS,
    **{f"papers/{paper}/README.md": says for paper, says in PAPERS.items()},
}
DESCRIBE = (
    "the rate at which their loss falls was divided",
    "is not settled here",
    "has no published record",
)
"""Sentences with a concluding word that say what was measured, or what was not."""


@cache
def sentences(page: str) -> tuple[str, ...]:
    """What a page says: README of its papers and picture, the findings with titles, a paper's."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "README.md":
        rows = [line.split(" | ")[2] for line in text.splitlines() if line.startswith("| [")]
        return (*re.findall(r"!\[([^]]*)\]", text), *rows)
    if page.startswith("papers/"):
        answer = text.partition("**What we found.**")[2].partition("\n**[Where")[0]
        return (answer.replace("**", ""),)
    sections = [section.partition("\n") for section in text.split("\n## ")[1:]]
    return tuple(part for title, _, body in sections for part in (title, _LINK.sub("", body)))


SAID = [
    pytest.param(page, text, says, id=f"{page}-{text}")
    for page, conclusions in PAGES.items()
    for text, says in conclusions.items()
]
record = cache(lambda name: published(one_named(name)))


def values_of(name: str, change: Callable[[Any], Any] = lambda data: data) -> Values:
    """The values of an experiment's answer, of its published record or a changed one."""
    answer = one_named(name).answer
    assert answer is not None
    return answer(change(record(name)))


@pytest.mark.parametrize(("page", "text", "says"), SAID)
def test_a_conclusion_is_that_of_its_records_and_claims(page, text, says):
    assert text in " ".join(" ".join(sentences(page)).split())
    outcomes = {claim.name: claim.expect.outcome for claim in find_claims()}
    assert all(outcomes[name] is Outcome.SUPPORTED for name in says.supported)
    assert all(outcomes[name] is Outcome.VIOLATED for name in says.violated)
    assert says.experiment or says.supported or says.violated
    assert not says.experiment or says.holds(values_of(says.experiment))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms of what is not positive
@pytest.mark.parametrize(
    ("experiment", "holds"),
    {(s.experiment, s.holds): None for _, _, s in (p.values for p in SAID) if s.experiment},
)
def test_a_conclusion_turns_with_its_record(experiment, holds):
    data = record(experiment)
    changes = chain(
        perturbations(data), one_at_a_time(data), negated(data), further_perturbations(data)
    )
    assert any(denies(experiment, holds, change) for _, change in changes)


def denies(experiment: str, holds: Predicate, change: Callable[[Any], Any]) -> bool:
    """Whether a changed record has an answer, and denies the conclusion."""
    with suppress(UserError), np.errstate(all="ignore"):
        return not holds(values_of(experiment, change))
    return False


@pytest.mark.parametrize(("page", "conclusions"), PAGES.items(), ids=list(PAGES))
def test_every_conclusion_is_compared(page, conclusions):
    compared = (*conclusions, *DESCRIBE)
    concluding = {said for part in sentences(page) for _, said in concluding_words(part)}
    assert [said for said in concluding if not any(text in said for text in compared)] == []


@pytest.mark.parametrize("title", sentences("docs/log/findings.md")[::2])
def test_every_title_is_compared(title):
    assert any(text in title for text in FINDINGS)
