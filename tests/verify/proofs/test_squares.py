"""Sums of squares prove true inequalities for all numbers, no false one, and are checked again."""

import copy
import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import expm

from attlas.claims.claim import Control, assume
from attlas.claims.proof import SQUARES, Proof
from attlas.claims.statement import inequality
from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Atom, Field, NotProvedError
from attlas.verify.proofs.gram import squares_agree, squares_of
from attlas.verify.proofs.points import Point
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.signed_polynomials import root_in, without_root
from attlas.verify.proofs.square_bases import bases
from attlas.verify.proofs.square_trees import MANIFEST, PLAIN, POSITIVE, ROOTS
from attlas.verify.proofs.squares import proved_by_squares

norm = jnp.linalg.norm


def real(*shape):
    return lambda rng, count: {"x": rng.normal(size=(count, *shape))}


def positive(*shape):
    return lambda rng, count: {"x": np.exp(rng.normal(size=(count, *shape)))}


def stated(sides, sample, **details):
    def statement(x, *, factor=1.0):
        r"""$$f(x) \\le g(x)$$"""
        return sides(x, factor)

    details = {"controls": [Control("halved", factor=0.5)], **details}
    return inequality(sample=sample, not_attacked="a test", **details)(statement)


def motzkin(x, c):
    return 3 * x[0] ** 2 * x[1] ** 2, c * (x[0] ** 4 * x[1] ** 2 + x[0] ** 2 * x[1] ** 4 + 1)


TRUE = {
    "norms of six numbers": (lambda x, c: (norm(x, 1), c * np.sqrt(6) * norm(x)), real(6)),
    "norms of three numbers": (lambda x, c: (norm(x, 1), c * np.sqrt(3) * norm(x)), real(3)),
    "norms the other way": (lambda x, c: (norm(x), c * norm(x, 1)), real(3)),
    "Cauchy and Schwarz": (
        lambda x, c: (jnp.abs(x[0] @ x[1]), c * norm(x[0]) * norm(x[1])), real(2, 3),
    ),
    "triangle": (lambda x, c: (norm(x[0] + x[1]), c * (norm(x[0]) + norm(x[1]))), real(2, 3)),
    "two means": (lambda x, c: (jnp.sqrt(x[0] * x[1]), c * x.mean()), positive(2)),
    "three means": (lambda x, c: (x.prod(), c * x.mean() ** 3), positive(3)),
    "a mean of reciprocals": (lambda x, c: (3 / (1 / x).sum(), c * x.mean()), positive(3)),
    "quotients": (
        lambda x, c: (1.5, c * (x / (x.sum() - x)).sum()), positive(3),
    ),
    "a hyperbolic cosine": (lambda x, c: (1.0, c * jnp.cosh(x)), real()),
    "a softmax": (lambda x, c: (jnp.sum(jax.nn.softmax(x) ** 2), c * 1.0), real(3)),
    "Hadamard": (
        lambda x, c: (jnp.linalg.det(x) ** 2, c * jnp.prod(jnp.sum(x**2, 1))), real(3, 3),
    ),
    "a maximum": (lambda x, c: (jnp.abs(x).max(), c * norm(x)), real(2)),
    "no sum of squares without a multiplier": (motzkin, real(2)),
}  # fmt: skip
FALSE = {
    "a little more than Motzkin": (
        lambda x, c: (1.01 * motzkin(x, c)[0], motzkin(x, c)[1]), real(2), "negative",
    ),
    "a root that is rounded down": (
        lambda x, c: (norm(x, 1), c * (np.sqrt(3) - 1e-9) * norm(x)), real(3), "no sum of squares",
    ),
    "true of positive numbers alone": (
        lambda x, c: (x.prod(), c * x.mean() ** 3), real(3), "negative",
    ),
    "true of small numbers": (lambda x, c: (x**2, c * x**2 * 4 - x**4), real(), "negative"),
}  # fmt: skip


@cache
def proof_of(name):
    """The proof of a true inequality, searched for once."""
    return proved_by_squares(stated(*TRUE[name]))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.thorough if "six" in n else ()) for n in TRUE]
)
def test_true_inequalities_are_proved_for_all_numbers(name):
    proof = proof_of(name)
    assert proof.method == SQUARES
    assert "by sums of squares for all" in proof.sentence()
    read = Proof.read(json.loads(json.dumps(proof.document())))
    assert recheck(stated(*TRUE[name]), read, seed=3) == ""


@pytest.mark.parametrize("name", FALSE)
def test_false_inequalities_are_not_proved(name):
    sides, sample, why = FALSE[name]
    with pytest.raises(NotProvedError, match=why):
        proved_by_squares(stated(sides, sample))


def test_a_control_that_would_be_proved_too_refuses_the_proof():
    sides, sample = TRUE["Cauchy and Schwarz"]
    claim = stated(sides, sample, controls=[Control("doubled", factor=2.0)])
    with pytest.raises(NotProvedError, match="'doubled' would be proved too"):
        proved_by_squares(claim)


def test_a_stored_certificate_that_is_changed_is_not_confirmed():
    name = "norms of three numbers"
    claim, proof = stated(*TRUE[name]), proof_of(name)
    for change in ("weight", "coefficient", "sign", "multiplier"):
        certificate = copy.deepcopy(dict(proof.certificate))
        square = certificate["squares"][-1][0]
        if change == "weight":
            square[1] = str(Fraction(square[1]) * 2)
        elif change == "coefficient":
            square[2][0][0] = str(Fraction(square[2][0][0]) + 1)
        elif change == "sign":
            square[1] = str(-Fraction(square[1]))
        else:
            leaf = certificate["cases"][0]["entries"][0]
            while "parts" in leaf:
                leaf = leaf["parts"][-1]
            leaf["multiplier"] = 1
        assert recheck(claim, replace(proof, certificate=certificate))


def test_a_proof_is_of_its_statement_and_not_of_a_stronger_one():
    name = "norms of three numbers"
    stronger = stated(lambda x, c: (norm(x, 1), c * 1.5 * norm(x)), real(3))
    assert recheck(stronger, proof_of(name))


def test_assumptions_are_constraints_and_are_named():
    ordered = [assume("x_1 <= x_0", lambda x: x[1] <= x[0])]
    sides = (lambda x, c: (x[1] ** 2, c * x[0] * x[1]), positive(2))
    proof = prove(stated(*sides, assumptions=ordered))
    assert isinstance(proof, Proof), proof
    assert proof.sentence().endswith("its assumptions hold")
    assert isinstance(prove(stated(*sides)), str)


def leaves(tree):
    return [leaf for part in tree["parts"] for leaf in leaves(part)] if "root" in tree else [tree]


def test_a_polynomial_with_roots_has_a_tree_for_each_case_of_signs():
    norms = proof_of("norms of three numbers").certificate
    assert len(norms["cases"]) == 8
    trees = [entry for case in norms["cases"] for entry in case["entries"]]
    assert all("root" in tree for tree in trees)
    assert {leaf["form"] for tree in trees for leaf in leaves(tree)} == {MANIFEST, PLAIN}
    for name, form in {"two means": ROOTS, "three means": POSITIVE}.items():
        means = proof_of(name).certificate["cases"][0]["entries"]
        assert {leaf["form"] for tree in means for leaf in leaves(tree)} == {form}
    cauchy = proof_of("Cauchy and Schwarz").certificate["squares"]
    assert len(cauchy) < 4, "cases that differ in signs alone share their squares"


def test_half_of_the_newton_polytope_and_its_blocks():
    (blocks,) = bases(MOTZKIN, ())
    terms = {term for block in blocks for base in block.basis for term in base}
    assert terms == {(), ((0, 1), (1, 1)), ((0, 2), (1, 1)), ((0, 1), (1, 2))}
    assert sorted(len(block.basis) for block in blocks) == [1, 1, 1, 1]


X, Y = {((0, 1),): 1}, {((1, 1),): 1}


def product(*factors):
    total: poly.Polynomial = {poly.ONE: 1}
    for factor in factors:
        total = poly.multiply(total, factor)
    return total


MOTZKIN = {((0, 4), (1, 2)): 1, ((0, 2), (1, 4)): 1, ((0, 2), (1, 2)): -3, (): 1}


def test_motzkin_is_no_sum_of_squares_and_is_one_with_a_multiplier():
    assert squares_of(MOTZKIN, ()) is None
    multiplier = poly.add(product(X, X), product(Y, Y))
    squares = squares_of(product(MOTZKIN, multiplier), ())
    assert squares is not None
    assert squares_agree(MOTZKIN, (), multiplier, squares)
    assert not squares_agree(MOTZKIN, (), {poly.ONE: 1}, squares)


@pytest.mark.parametrize("way", [0, 1, 2])
def test_what_is_left_without_a_root_shows_that_nothing_is_negative(way):
    # at point 0 the base is no square
    field = Field(Point("0", 1))
    field.symbol(Atom("x", False))
    field.symbol(Atom("y", False))
    base = poly.add(product(X, X), {poly.ONE: 1})
    (term,) = field.root(base, Fraction(1, 2)).top
    goal = {**Y, term: Fraction(2)}
    smaller = without_root(field, goal, root_in(field, goal), way)
    rng = np.random.default_rng(0)
    for x, y in rng.normal(size=(200, 2)):
        values = [sum(float(c) * math.prod((x, y)[a] ** e for a, e in t) for t, c in p.items())
                  for p in smaller]  # fmt: skip
        if min(values) >= 0:
            assert y + 2 * math.sqrt(x * x + 1) >= 0


def test_constraints_prove_what_is_false_without_them():
    unit = [X, poly.add({poly.ONE: 1}, X, -1)]
    goal = poly.add(product(X, X), product(X, X, X), -1)
    assert squares_of(goal, ()) is None
    squares = squares_of(goal, unit)
    assert squares is not None
    assert squares_agree(goal, unit, {poly.ONE: 1}, squares)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_sum_of_squares_is_found_and_less_than_it_is_not(seed):
    rng = np.random.default_rng(seed)
    terms = [(), ((0, 1),), ((1, 1),), ((0, 1), (1, 1)), ((0, 2),)]
    total: poly.Polynomial = {}
    for _ in range(3 + seed % 2):
        base = {t: int(c) for t, c in zip(terms, rng.integers(-3, 4, 5), strict=True) if c}
        total = poly.add(total, product(base, base))
    squares = squares_of(total, ())
    assert squares is not None
    assert squares_agree(total, (), {poly.ONE: 1}, squares)
    at_zero = total.get(poly.ONE, 0)
    assert squares_of({**total, poly.ONE: -1 - at_zero}, ()) is None


OBSTACLES = {
    "signs of roots": (
        lambda x, y, c: (
            jnp.linalg.norm(x / jnp.linalg.norm(x) - y / jnp.linalg.norm(y)),
            2 * c * jnp.linalg.norm(x - y) / (jnp.linalg.norm(x) + jnp.linalg.norm(y)),
        )
    ),
    "a clipped norm": (
        lambda x, y, c: (
            jnp.linalg.norm(x / jnp.maximum(1.0, jnp.linalg.norm(x))),
            c * jnp.linalg.norm(x) + 0 * y[0],
        )
    ),
    "an exponential of a matrix": (
        lambda x, y, c: (
            jnp.trace(expm(jnp.outer(x, x))),
            c * jnp.trace(expm(jnp.outer(x, x) + jnp.outer(y, y))),
        )
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", OBSTACLES)
def test_what_has_no_rule_is_said_and_no_exception(name):
    function = OBSTACLES[name]

    def sides(x, y, *, factor=1.0):
        r"""$$\lVert x \rVert \le \lVert x \rVert$$ in some form."""
        return function(x, y, factor)

    claim = inequality(
        sample=lambda rng, count: {k: rng.normal(size=(count, 2)) for k in "xy"},
        controls=[Control("a tenth", factor=0.1)],
        not_attacked="a test",
    )(sides)
    result = prove(claim)
    assert result.method if isinstance(result, Proof) else result
