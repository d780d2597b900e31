"""Enumeration proves true statements over finite sets, and no false one."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Claim, Control, assume
from attlas.claims.proof import ENUMERATION, Proof
from attlas.claims.statement import identity, inequality
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.enumeration import proved_by_enumeration
from attlas.verify.proofs.finite_sets import finite_set
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.symmetry import is_symmetric

HALVED = [Control("halved", factor=0.5)]


def bits(rng, count):
    return {name: rng.integers(0, 2, (count, 10)).astype(float) for name in ("u", "v")}


def few_bits(rng, count):
    return {name: array[:, :2] for name, array in bits(rng, count).items()}


def orders(rng, count):
    return {"s": rng.permuted(np.tile(np.arange(5.0), (count, 1)), axis=1)}


def whole_orders(rng, count):
    return {name: array.astype(int) for name, array in orders(rng, count).items()}


def table(rng, count):
    del rng
    return {"x": np.arange(1.0, 1.0 + count)}


def stated(function, sample, kind=inequality, **details):
    details = {"controls": HALVED, **details}
    if sample is table:
        details = {"count": 5, "enumerates": 5, **details}
    if kind is inequality:
        details["not_attacked"] = "a test"
    return kind(sample=sample, **details)(function)


def inner(u, v, *, factor=1.0):
    r"""$$\langle u, v \rangle^2 \le \lVert u \rVert_1 \lVert v \rVert_1$$ attained at u = v."""
    return jnp.sum(u * v) ** 2, factor * jnp.sum(u) * jnp.sum(v)


def ratio(u, v, *, factor=1.0):
    r"""$$\frac{|u \cap v|}{|u| + 1} + \frac{|u \setminus v|}{|u| + 1} \le \frac{|u|}{|u| + 1}$$"""
    size = jnp.sum(u) + 1
    return jnp.sum(u * v) / size + jnp.sum(u * (1 - v)) / size, factor * jnp.sum(u) / size


def displacement(s, *, factor=1.0):
    r"""$$\sum_i |s_i - i| \le 2 \#\{i < j : s_i > s_j\}$$ Diaconis and Graham (1977)."""
    inversions = jnp.sum(jnp.triu(s[:, None] > s[None, :], 1))
    return jnp.sum(jnp.abs(s - jnp.arange(5))).astype(float), factor * 2.0 * inversions.astype(
        float
    )


def squares(s, *, factor=1.0):
    r"""$$\sum_i s_i^2 = 30$$"""
    return factor * jnp.sum(s**2), 30.0


def growth(x, *, factor=1.0):
    r"""$$1 + x \le e^x$$"""
    return 1 + x, factor * jnp.exp(x)


TRUE = [
    (inner, bits, inequality),
    (ratio, few_bits, inequality),
    (displacement, whole_orders, inequality),
    (squares, orders, identity),
    (growth, table, inequality),
]


@pytest.mark.parametrize(("function", "sample", "kind"), TRUE)
def test_true_statements_are_proved_at_every_instance(function, sample, kind):
    claim = stated(function, sample, kind)
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert proof.method == ENUMERATION
    assert recheck(claim, proof, seed=4) == ""


@pytest.mark.parametrize(("function", "sample", "kind"), TRUE)
def test_a_false_twin_is_not_proved(function, sample, kind):
    claim = stated(function, sample, kind)

    def sides(instance, changes=None):
        del changes
        return claim.sides(instance, {"factor": 0.7})

    false = replace(claim, controls=())
    object.__setattr__(false, "sides", sides)
    with pytest.raises(NotProvedError):
        proved_by_enumeration(false)


def rare(u, v, *, factor=1.0):
    r"""False at one of 2^20 instances alone: $$\prod_i u_i v_i \le 1/2$$"""
    return jnp.prod(u) * jnp.prod(v), factor / 2


def test_what_fails_at_one_instance_that_no_draw_is_is_not_proved():
    claim = stated(rare, bits, controls=[Control("a negative right side", factor=-1.0)])
    assert not any(np.all(claim.draw(0, claim.count)[name] == 1, axis=1).all() for name in "uv")
    with pytest.raises(NotProvedError, match="it fails at"):
        proved_by_enumeration(claim)


def hair(s, *, factor=1.0):
    r"""Equal but for the last digit of a float: $$s_1 (1 + 2^{-50}) \le s_1$$"""
    return s[0] * (1 + 2.0**-50), factor * s[0]


def test_a_violation_below_every_rounding_is_seen():
    with pytest.raises(NotProvedError):
        proved_by_enumeration(stated(hair, orders))


def test_real_numbers_that_vary_are_no_finite_set():
    claim = stated(growth, lambda rng, count: {"x": rng.normal(size=count)})
    with pytest.raises(NotProvedError, match="other numbers than whole ones"):
        proved_by_enumeration(claim)


def test_numbers_that_a_sampler_computes_or_does_not_declare_as_all_are_no_finite_set():
    """A measured radius is the same at each seed, and proves no bound on what it measures."""
    computed = stated(growth, lambda rng, count: {"x": np.sqrt(table(rng, count)["x"])})
    undeclared = stated(growth, lambda rng, count: {"x": 100 * table(rng, count)["x"]})
    for claim in (replace(computed, enumerates=computed.count), computed, undeclared):
        with pytest.raises(NotProvedError):
            proved_by_enumeration(claim)


def test_a_control_that_holds_everywhere_stops_a_proof():
    claim = stated(growth, table, controls=[Control("doubled", factor=2.0)])
    with pytest.raises(NotProvedError, match="would be proved too"):
        proved_by_enumeration(claim)


def test_a_control_with_instances_in_the_set_stops_a_proof():
    claim = stated(growth, table, controls=[Control("the same", sample=table)])
    with pytest.raises(NotProvedError, match="has instances in the set"):
        proved_by_enumeration(claim)


def test_assumptions_leave_instances_out_and_are_said():
    def pair(s, *, factor=1.0):
        r"""$$s_1 \le s_2$$"""
        return s[0], factor * s[1]

    ordered = assume("$s_1 < s_2$", lambda s: s[0] < s[1])
    claim = stated(pair, orders, assumptions=[ordered])
    assert proved_by_enumeration(claim).sentence().endswith("that meet its assumptions")
    with pytest.raises(NotProvedError):
        proved_by_enumeration(stated(pair, orders))


def test_a_sampler_that_changed_is_noticed():
    claim = stated(growth, table)
    proof = proved_by_enumeration(claim)
    moved = stated(
        growth, lambda rng, count: {"x": table(rng, count)["x"] + 1.0}, count=5, enumerates=5
    )
    for claim in (moved, stated(displacement, whole_orders)):
        assert recheck(claim, proof) == "its sampler draws from another set now"


ASYMMETRIC = {
    "weights": lambda x: jnp.sum(x * jnp.arange(4.0)),
    "first entry": lambda x: x[0],
    "neighbours": lambda x: jnp.sum(x[1:] * x[:-1]),
    "reversed": lambda x: jnp.sum(x * x[::-1]),
    "running sum": lambda x: jnp.sum(jnp.cumsum(x)),
    "largest place": lambda x: jnp.argmax(x),
    "matrix": lambda x: x @ jnp.arange(16.0).reshape(4, 4) @ x,
    "not reduced": lambda x: x + 1,
}
SYMMETRIC = {
    "sum": lambda x: jnp.sum(jnp.where(x > 0, x, 0.0)),
    "norm": lambda x: jnp.sqrt(x @ x),
    "mean of squares": lambda x: jnp.mean((x - jnp.mean(x)) ** 2),
    "extremes": lambda x: jnp.max(x) - jnp.min(x),
    "softmax": lambda x: jnp.sum(jax.nn.softmax(x) ** 2),
}


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_no_order_that_matters_is_taken_for_none(name):
    assert not is_symmetric(jax.make_jaxpr(ASYMMETRIC[name])(jnp.ones(4)), (0,))


@pytest.mark.parametrize("name", ["sum", "norm", "mean of squares", "extremes"])
def test_sides_without_an_order_are_recognised(name):
    assert is_symmetric(jax.make_jaxpr(SYMMETRIC[name])(jnp.ones(4)), (0,))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_what_is_called_symmetric_is_so_in_floats(name):
    program = jax.make_jaxpr(SYMMETRIC[name])(jnp.ones(4))
    if is_symmetric(program, (0,)):
        x = np.random.default_rng(0).normal(size=4)
        assert SYMMETRIC[name](x) == pytest.approx(SYMMETRIC[name](x[[2, 0, 3, 1]]))


def drawn_statement(rng) -> Claim:
    """A random statement on small sets of whole numbers, with a linear and a quadratic side."""
    a, b, c = rng.integers(-3, 4, 3)

    def function(s, *, offset=0.0):
        r"""$$a s_1 + b s_2 s_3 \le c s_4$$ of random whole numbers."""
        return float(a) * s[0] + float(b) * s[1] * s[2] + offset, float(c) * s[3]

    return stated(function, orders, controls=[Control("a hundred more", offset=100.0)])


def test_what_is_proved_of_random_statements_holds_at_all_orders():
    """Every order is tried in whole numbers, for fifteen statements."""
    rng = np.random.default_rng(3)
    everything = next(
        finite_set(
            {"s": orders(rng, 400)["s"]}, lambda: None, [{"s": orders(rng, 400)["s"]}], False
        ).batches(120)
    )["s"]  # fmt: skip
    assert len(np.unique(everything, axis=0)) == 120
    proved = 0
    for _ in range(15):
        claim = drawn_statement(rng)
        left, right = np.stack([claim.sides({"s": jnp.asarray(s)})[:2] for s in everything]).T
        try:
            proved_by_enumeration(claim)
        except NotProvedError:
            assert (left > right).any()
        else:
            proved += 1
            assert (left <= right).all()
    assert 0 < proved < 15
