"""What a notebook shows: numbers and small tables, never a wall of arrays, all text escaped."""

import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.bounds.comparison.transformer_weights import Head
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.core.solution import Result, Solution
from attlas.experiments.cell import Cell
from attlas.experiments.record import Layout, Record
from attlas.training.trajectory import Trajectory

LARGE = np.random.default_rng(0).normal(size=(30, 40))
VIOLATED = Verdict(
    Outcome.VIOLATED, "<left> above $right$", -0.5, 1.25, 64, 64, witness={"W<": LARGE}
)
REPORT = CheckReport(
    "mine/lemma",
    VIOLATED,
    (ControlReport("halved <b>", Outcome.VIOLATED, VIOLATED),),
    Outcome.SUPPORTED,
    ChallengeReport(1.25, True, 8, 20, VIOLATED),
    statement=r"\|W\| \le 1",
)
WEIGHTS = at.TransformerWeights(((Head(*[np.eye(4) / 8] * 3),),), np.ones(4) / 4)


def trajectory():
    last = {"W": jnp.zeros((2, 2))}
    return Trajectory(jnp.arange(3), {"W": jnp.zeros((3, 2, 2))}, last, loss=jnp.ones(3))


def comparison():
    return at.compare_bounds(WEIGHTS, LARGE[:, :4].reshape(6, 5, 4), 10**6, 0.05)


def record():
    layout = Layout({"loss": ("step", "member")})
    return Record("toy <x>", Cell({"p": "<2>"}), {"loss": LARGE}, {}, "k" * 64, layout)


SHOWN = {
    "Verdict": lambda: VIOLATED,
    "CheckReport": lambda: REPORT,
    "Claim": lambda: at.find_claims(["lemma-12"])[0],
    "Comparison": comparison,
    "Solution": lambda: at.attention_svm(LARGE.reshape(6, 5, 40), LARGE[:6], [0] * 6, 2.0),
    "Record": record,
    "Trajectory": trajectory,
}


@pytest.mark.parametrize("name", SHOWN)
def test_pictures_are_short_well_formed_and_escaped(name):
    thing = SHOWN[name]()
    page = thing._repr_html_()
    # one table or several: well formed inside one element, hence nothing unescaped
    tree = ElementTree.fromstring(f"<div>{page}</div>".replace("<wbr>", "<wbr/>"))
    assert tree.findall(".//table")
    assert {node.tag for node in tree.iter()}.isdisjoint({"b", "left", "x", "script"})
    assert len(page) < 9000
    assert len(repr(thing)) < 2000
    assert "array(" not in repr(thing)


def test_a_report_says_its_outcome_and_what_is_unexpected():
    assert repr(REPORT).splitlines()[0] == (
        "mine/lemma: VIOLATED (<left> above right; slack −0.5; tightness 1.25; "
        "64 of 64 instances, seed 0)"
    )
    assert "unexpected: VIOLATED, expected SUPPORTED" in repr(REPORT)
    assert "<math" in REPORT._repr_html_()
    assert at.check(at.find_claims(["lemma-12"])[0], count=30).statement


def test_an_unconverged_number_is_not_shown():
    found = Solution(
        np.asarray(123.0), np.asarray(Result.MAX_STEPS.value), {"gap": np.asarray(1.0)}
    )
    assert "123" not in repr(found) + found._repr_html_()
    assert repr(found).startswith("Solution(MAX_STEPS: the steps ran out")
    batch = Solution(np.ones(3), np.array([0, 0, 1]))
    assert repr(batch) == "Solution(2 CONVERGED, 1 INFEASIBLE; float64[3]; )"


def test_a_solution_can_be_printed_while_it_is_traced():
    texts = []

    @jax.jit
    def program(x):
        texts.append(repr(Solution(x, x)))
        return x

    program(jnp.ones(2))
    assert "f64[2]" in texts[0]


def test_a_comparison_as_a_frame():
    table = comparison()
    frame = table.to_pandas()
    assert list(frame.index) == [entry.name for entry in table.entries]
    assert frame.loc[table.best.name, "gap"] == table.best.gap
    assert frame.loc[table.best.name, "vacuous"] == table.best.vacuous
    assert repr(table).count("the smallest") == 1
