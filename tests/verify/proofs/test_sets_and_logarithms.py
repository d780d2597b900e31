"""Inequalities on distributions, intervals, definite matrices and unit vectors, and logarithms."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import rel_entr, xlogy

from attlas.claims.claim import Control
from attlas.claims.proof import Proof
from attlas.claims.statement import inequality
from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.confirmed_proof import CERTIFICATE, confirmed_proof
from attlas.verify.proofs.elements import Atom, Field, NotProvedError
from attlas.verify.proofs.gram import square_root
from attlas.verify.proofs.logarithms import without_logarithms
from attlas.verify.proofs.orderings import ordered
from attlas.verify.proofs.parametrisations import Parametrisation, parametrisations
from attlas.verify.proofs.points import Point
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.squares import proved_by_squares


def distributions(rng, count):
    return {name: rng.dirichlet([1.0, 1.0, 1.0], size=count) for name in "xy"}


def between(low, high):
    return lambda rng, count: {name: rng.uniform(low, high, size=count) for name in "xy"}


def definite(rng, count):
    factors = rng.normal(size=(2, count, 2, 2))
    return {n: F @ F.swapaxes(1, 2) for n, F in zip("xy", factors, strict=True)}


def units(rng, count):
    v = rng.normal(size=(2, count, 3))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    return dict(zip("xy", v, strict=True))


def real(rng, count):
    return {"x": rng.normal(size=(count, 3)), "y": rng.normal(size=(count, 3))}


def entropy(p):
    return -jnp.sum(xlogy(p, p))


def loss(v):
    return -jax.nn.log_softmax(v)[0]


def divergence(x, y):
    return jnp.sum(rel_entr(x, y))


TRUE = {
    "Gibbs": (distributions, lambda x, y, c: (1 - c, divergence(x, y)), "distributions x"),
    "chi-square": (
        distributions, lambda x, y, c: (divergence(x, y), c * jnp.sum((x - y) ** 2 / y)),
        "distributions x",
    ),
    "entropy of three": (
        distributions, lambda x, y, c: (entropy(x) + 0 * y[0], c * jnp.log(3.0)), "distributions",
    ),
    "Renyi": (
        distributions, lambda x, y, c: (-jnp.log(jnp.sum(x**2)), c * entropy(x)), "distributions x",
    ),
    "a product": (
        between(0, 1), lambda x, y, c: (x * y, c * jnp.minimum(x, y)), "all x from 0 to 1",
    ),
    "curvature": (
        between(-1, 1), lambda x, y, c: (x**4 + y**2, c * (1 + y**2)), "all x from -1 to 1",
    ),
    "Hadamard": (
        definite, lambda x, y, c: (jnp.linalg.det(x), c * x[0, 0] * x[1, 1]), "real x of shape",
    ),
    "determinants": (
        definite,
        lambda x, y, c: (jnp.linalg.det(x) + jnp.linalg.det(y), c * jnp.linalg.det(x + y)),
        "semidefinite x",
    ),
    "cosine": (units, lambda x, y, c: (jnp.abs(x @ y), c * 1.0), "unit vectors x"),
    "losses": (
        real, lambda x, y, c: (loss((x + y) / 2), c * (loss(x) + loss(y)) / 2), "real x of shape",
    ),
}  # fmt: skip
FALSE = {
    "half of chi-square": (
        distributions, lambda x, y, c: (divergence(x, y), 0.5 * jnp.sum((x - y) ** 2 / y)),
    ),
    "entropy of two": (distributions, lambda x, y, c: (entropy(x) + 0 * y[0], jnp.log(2.0))),
    "a larger product": (between(0, 1.25), lambda x, y, c: (x * y, jnp.minimum(x, y))),
    "a determinant": (
        definite, lambda x, y, c: (jnp.linalg.det(x), 0.999 * x[0, 0] * x[1, 1]),
    ),
    "a smaller cosine": (units, lambda x, y, c: (x @ y, 0.9999)),
    "losses the other way": (
        real, lambda x, y, c: ((loss(x) + loss(y)) / 2, loss((x + y) / 2)),
    ),
}  # fmt: skip


def stated(sample, sides, controls=(("halved", 0.5),)):
    def statement(x, y, *, factor=1.0):
        r"""$$f(x) \\le g(x)$$"""
        return sides(x, y, factor)

    controls = [Control(text, factor=factor) for text, factor in controls]
    return inequality(sample=sample, controls=controls, not_attacked="a test")(statement)


@pytest.mark.parametrize("name", TRUE)
def test_true_inequalities_on_sets_are_proved_and_checked_again(name):
    sample, sides, words = TRUE[name]
    claim = stated(sample, sides, (("halved", 0.5 if name != "Gibbs" else 0.9),))
    proof = proved_by_squares(claim)
    assert words in proof.sentence()
    read = Proof.read(json.loads(json.dumps(proof.document())))
    assert recheck(claim, read, seed=3) == ""
    weaker = stated(sample, lambda x, y, c: (sides(x, y, 1.0)[0] + 0.01, sides(x, y, 1.0)[1]))
    assert recheck(weaker, read)


@pytest.mark.parametrize("name", FALSE)
def test_false_inequalities_on_sets_are_not_proved(name):
    with pytest.raises(NotProvedError):
        proved_by_squares(stated(*FALSE[name]), seconds=3.0)


@pytest.mark.parametrize("name", ["a product", "entropy of three", "determinants", "cosine"])
def test_a_control_that_would_be_proved_too_refuses_the_proof(name):
    sample, sides, _ = TRUE[name]
    with pytest.raises(NotProvedError, match="'doubled' would be proved too"):
        proved_by_squares(stated(sample, sides, (("doubled", 2.0),)))


def test_a_proof_on_a_set_is_not_one_on_a_larger_set():
    sample, sides, _ = TRUE["a product"]
    proof = proved_by_squares(stated(sample, sides))
    assert "another domain" in recheck(stated(between(0, 3), sides), proof)


def test_maxima_that_cancel_make_no_cases():
    sample, sides, _ = TRUE["losses"]
    certificate = proved_by_squares(stated(sample, sides)).certificate
    assert len(certificate["cases"]) == 1
    assert not certificate["split"]


@pytest.mark.parametrize(
    ("draws", "kind"),
    [
        (lambda rng: rng.dirichlet([0.3, 0.3], size=(64, 2)), "distribution"),
        (lambda rng: rng.uniform(0.05, 1, size=(64, 3)), "interval"),
        (lambda rng: rng.uniform(0.05, 1, size=(8, 3)), None),
        (lambda rng: rng.normal(size=(512, 3)), None),
        (lambda rng: rng.exponential(size=(512, 3)), None),
        (lambda rng: rng.dirichlet([1.0] * 3, size=64)[:, :2], None),
        (lambda rng: units(rng, 64)["x"], "unit"),
        (lambda rng: definite(rng, 64)["x"], "definite"),
        (lambda rng: definite(rng, 64)["x"] - 0.1 * np.eye(2), None),
    ],
)
def test_sets_are_recognised_where_all_draws_lie_in_them(draws, kind):
    x = draws(np.random.default_rng(1))
    found = parametrisations({"x": x}, 1)
    assert (found["x"].kind if found else None) == kind
    if found:
        assert all(found["x"].parameters(row, closed=False) is not None for row in x)
        assert found["x"].parameters(x[0] - 10, closed=True) is None


def test_the_boundary_of_a_set_counts_where_it_is_closed():
    unit = Parametrisation("interval", (0.0, 1.0))
    assert unit.parameters(np.array(1.0), closed=False) is None
    assert unit.parameters(np.array(1.0), closed=True) == {(): math.inf}
    simplex = Parametrisation("distribution")
    assert simplex.parameters(np.array([1.0, 0.0]), closed=False) is None
    assert simplex.parameters(np.array([1.0, 0.0]), closed=True) == {(0,): 1.0, (1,): 0.0}


def value(a, numbers):
    return sum(float(c) * math.prod(numbers[k] ** float(e) for k, e in t) for t, c in a.items())


@pytest.mark.parametrize("seed", range(20))
def test_without_logarithms_is_never_positive_where_the_polynomial_is_negative(seed):
    rng = np.random.default_rng(seed)
    field = Field(Point("0"))
    x, y = (field.atom(Atom(name, True)) for name in "xy")
    bases = [{((x, 1),): 1}, {((x, 1),): 1, ((y, 1),): 2}, {poly.ONE: 3}]
    logs = [field.atom(Atom(f"log{k}", False, "log", base)) for k, base in enumerate(bases)]
    goal = {((x, 1),): int(rng.integers(-2, 3)), poly.ONE: int(rng.integers(-2, 3))}
    for log in logs:
        for weight in ((), ((x, 1),), ((y, 1),)):
            goal[poly.product(weight, ((log, 1),))] = int(rng.integers(-2, 3))
    goal = {term: c for term, c in goal.items() if c}
    lower = without_logarithms(field, goal)
    assert lower is not None
    for px, py in np.exp(rng.normal(size=(50, 2))):
        numbers = {x: px, y: py}
        numbers |= {
            log: math.log(value(base, numbers)) for log, base in zip(logs, bases, strict=True)
        }
        if value(lower, numbers) >= 1e-9:
            assert value(goal, numbers) >= 0


def test_a_weight_that_may_be_negative_keeps_its_logarithm():
    field = Field(Point("0"))
    x, y = field.atom(Atom("x", False)), field.atom(Atom("y", True))
    log = field.atom(Atom("log(y)", False, "log", {((y, 1),): 1}))
    assert without_logarithms(field, {((x, 1), (log, 1)): 1}) is None
    assert without_logarithms(field, {((log, 2),): 1}) is None


@pytest.mark.parametrize("seed", range(6))
def test_square_roots_of_polynomials_and_of_none(seed):
    rng = np.random.default_rng(seed)
    terms = [(), ((0, 1),), ((1, 1),), ((0, 1), (2, 1)), ((1, 2),)]
    base = {t: int(c) for t, c in zip(terms, rng.integers(1, 5, 5), strict=True)}
    goal = poly.multiply({poly.ONE: 3}, poly.multiply(base, base))
    found = square_root(goal)
    assert found is not None
    square = poly.multiply({poly.ONE: found.weight}, poly.multiply(found.base, found.base))
    assert square == goal
    assert square_root(poly.add(goal, {poly.ONE: 1})) is None
    assert square_root({term: -c for term, c in goal.items()}) is None


def test_ordered_atoms_are_sums_of_distances():
    field = Field(Point("0"))
    a, b, c = (field.atom(Atom(name, True)) for name in "abc")
    above = [{((a, 1),): 1, ((b, 1),): -1}, {((b, 1),): 1, ((c, 1),): -1},
             {((a, 1),): 1, ((c, 1),): -1}, {((c, 1),): 1, poly.ONE: -2}]  # fmt: skip
    result = ordered(field, {((a, 1),): 1, ((c, 1),): -1}, above)
    assert result == {((a, 1),): 1, ((b, 1),): 1}
    assert ordered(field, {((c, 1),): 1, poly.ONE: -2}, above) == {((c, 1),): 1}
    assert ordered(field, {((a, 1),): 1}, ()) is None


def test_a_proof_that_another_check_does_not_confirm_is_none():
    claim = stated(*TRUE["Gibbs"][:2])
    details = (claim, "by hand", "for all", {"shapes": {"x": [3]}}, "nothing", {})
    proof = confirmed_proof(*details, lambda proof: "")
    assert proof.where["shapes"] == {"x": [3]}
    assert proof.where["links"] == {}
    with pytest.raises(NotProvedError, match="certificate does not confirm it: it is wrong"):
        confirmed_proof(*details, lambda proof: "it is wrong", CERTIFICATE)
