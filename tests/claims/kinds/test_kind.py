"""Every kind of claim is one object, and the engine asks it alone."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.kinds.inequality import Entrywise, Existence, Identity, Inequality
from attlas.claims.kinds.kind import Expectation, Kind, Probability
from attlas.claims.sides import Evidence, Rule
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from attlas.verify.check import check
from attlas.verify.power import power

ROOT = Path(__file__).parents[3]
ONES = np.ones((40, 1))


def evidence(left, right):
    return Evidence(left, right, abs(right), 0 * left, np.ones(40, bool), range=0 * left)


def test_records_hold_the_name_of_a_kind():
    for kind in Kind:
        assert json.loads(json.dumps({"kind": kind})) == {"kind": str(kind)}
        assert Kind(str(kind)) is kind


def test_every_kind_has_its_own_object_and_words():
    rules = [kind.rule for kind in Kind]
    assert all(isinstance(rule, Rule) for rule in rules)
    for words in ({rule.noun for rule in rules}, {rule.plural for rule in rules}):
        assert len(words) == len(rules)
    assert all(rule.noun.startswith(("a ", "an ")) for rule in rules)


@pytest.mark.parametrize("rule", [Inequality(), Existence(), Identity(), Expectation()])
def test_a_statement_stronger_than_an_attained_one_is_violated(rule):
    attained = evidence(ONES, ONES)
    assert rule.decide(attained, 64, 1e-3).outcome is Outcome.SUPPORTED
    for changed in rule.stronger(attained, 1.01):
        assert rule.decide(changed, 64, 1e-3).outcome is Outcome.VIOLATED
        assert not isinstance(rule, Entrywise) or rule.violating(changed, 64).all()


def test_a_stronger_probability_leaves_less_room_for_failures():
    (changed,) = Probability().stronger(evidence(ONES, 0.9 * ONES), 2.0)
    np.testing.assert_allclose(changed.right, 0.95)


def test_the_example_of_the_guide_is_a_kind_that_the_engine_checks():
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"## A kind of claim.*?```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(code, "extending.md", "exec"), names)
    kind = SimpleNamespace(rule=names["Strict"]())

    def draws(rng, count):
        return {"x": np.exp(rng.normal(size=count)), "y": np.exp(rng.normal(size=count))}

    @inequality(sample=draws, controls=[Control("the larger", largest=True)])
    def means(x, y, *, largest=False):
        r"""$$\\sqrt{x y} < \\max(x, y)$$"""
        return jnp.maximum(x, y) if largest else jnp.sqrt(x * y), jnp.maximum(x, y)

    claim = replace(means, kind=kind)
    report = check(claim, challenge=1)
    assert report.verdict.outcome is Outcome.SUPPORTED
    # Equal sides satisfy the inequality and violate the strict one.
    assert [control.verdict.outcome for control in report.controls] == [Outcome.VIOLATED]
    assert [c.verdict.outcome for c in check(means, challenge=0).controls] == [Outcome.SUPPORTED]
    assert "are not below the right" in report.controls[0].verdict.reason
    assert report.challenge is not None
    assert power(claim, factors=(1e6,), evaluations=0).smallest == (1e6,)
