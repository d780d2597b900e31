"""Branch and bound proves true inequalities on a box, and no false one."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.proof import BOX, Proof
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from attlas.verify.proofs.boxes import proved_on_box, recheck_on_box
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck


def drawn(low, high, shape=()):
    return lambda rng, count: {"x": rng.uniform(low, high, size=(count, *shape))}


def stated(function, sample, **details):
    details = {"controls": [Control("halved", factor=0.5)], **details}
    return inequality(sample=sample, not_attacked="a test", **details)(function)


def exponential(x, *, factor=1.0):
    r"""$$1 + x \le e^x$$"""
    return 1 + x, factor * jnp.exp(x)


def maximum(x, *, factor=1.0):
    r"""$$\max |x_i| \le \lVert x \rVert_1$$"""
    return jnp.abs(x).max(), factor * jnp.abs(x).sum()


def step(x, *, factor=1.0):
    r"""A side that jumps at 1/3: $$1_{x > 1/3} \le 2$$"""
    return jnp.where(x > 1 / 3, 1.0, 0.0), 2.0 * factor - 0.1


TRUE = [
    (exponential, drawn(-1, 1)),
    (maximum, drawn(-1, 1, (2,))),
    (step, drawn(0, 1)),
]


@cache
def proof_of(function, sample):
    """The proof of an inequality, searched for once."""
    return proved_on_box(stated(function, sample))


@pytest.mark.thorough
@pytest.mark.parametrize(("function", "sample"), TRUE)
def test_true_inequalities_are_proved_where_they_are_attained_too(function, sample):
    claim = stated(function, sample)
    proof = proof_of(function, sample)
    assert proof.method == BOX
    assert "branch and bound for all" in proof.sentence()
    assert recheck_on_box(claim, proof, seed=3) == ""
    low, high = proof.where["box"]["x"]
    assert low < high


@pytest.mark.parametrize(("function", "sample"), TRUE)
def test_no_control_is_proved(function, sample):
    claim = stated(function, sample)
    false = replace(
        claim, function=lambda x: function(x, factor=0.5), controls=(), expect=claim.expect
    )
    with pytest.raises(NotProvedError):
        proved_on_box(false)


def spike(x, *, width=1e-4):
    r"""False on a set of measure 1e-4 that draws miss: $$\max(0, 1 - |x - c| / w) \le 1/2$$"""
    return jnp.maximum(0.0, 1 - jnp.abs(x - 0.123456789) / width), jnp.asarray(0.5)


def jump(x, *, width=1e-6):
    r"""False between two jumps near together, where derivatives vanish."""
    inside = (x > 0.7071) & (x < 0.7071 + width)
    return jnp.where(inside, 2.0, 0.0), jnp.asarray(1.0)


@pytest.mark.parametrize(("function", "width"), [(spike, 10.0), (jump, 0.1)])
def test_what_is_false_where_no_draw_lies_is_not_proved(function, width):
    claim = stated(function, drawn(0, 1), controls=[Control("wide", width=width)])
    with pytest.raises(NotProvedError):
        proved_on_box(claim)


def test_a_stopped_gradient_is_no_derivative():
    def hidden(x, *, factor=1.0):
        r"""$$1 - x (1 - x) \cdot 4.1 \ge 0$$ is false at 1/2."""
        return jax.lax.stop_gradient(4.1 * x * (1 - x)), factor + 0 * x

    claim = stated(hidden, lambda rng, count: {"x": rng.choice([0.0, 0.3, 1.0], size=count)})
    with pytest.raises(NotProvedError):
        proved_on_box(claim)


@pytest.mark.thorough
def test_assumptions_bound_the_box_and_are_said():
    @inequality(
        sample=drawn(-0.9, 0.99),
        assumptions=[assume(r"$x \le 1$", lambda x: x <= 1)],
        controls=[Control("halved", factor=0.5)],
        not_attacked="a test",
    )
    def square(x, *, factor=1.0):
        r"""$$x^2 \le 1$$"""
        return x**2, factor + 0 * x

    proof = proved_on_box(square)
    assert proof.sentence().endswith("for all x from -0.9 to 0.99 that meet its assumptions")
    assert proof.certificate["share"] == 1


def test_a_control_that_floats_do_not_refute_in_the_box_prevents_a_proof():
    claim = stated(exponential, drawn(-1, 1), controls=[Control("same", factor=1.0000000001)])
    with pytest.raises(NotProvedError, match="is not refuted in the box"):
        proved_on_box(claim)


def test_arrays_that_depend_on_others_are_named():
    def product(x, y, *, factor=1.0):
        r"""$$x \le y$$ where $y = x + 1$."""
        return x, factor * y

    def sample(rng, count):
        x = rng.uniform(0, 5, size=count)
        return {"x": x, "y": x + 1}

    with pytest.raises(NotProvedError, match="arrays depend on others"):
        proved_on_box(stated(product, sample))


@pytest.mark.thorough
def test_what_is_true_of_fewer_entries_alone_is_not_proved():
    def norms(x, *, factor=1.0):
        r"""$$\lVert x \rVert_1 \le 2.9 \lVert x \rVert$$"""
        return jnp.sum(jnp.abs(x)), factor * 2.9 * jnp.linalg.norm(x)

    with pytest.raises(NotProvedError, match="9 coordinates"):
        proved_on_box(stated(norms, drawn(1.0, 4.0, (9,))))


def test_a_proof_of_another_statement_is_not_confirmed():
    function, sample = TRUE[0]
    claim, proof = stated(function, sample), proof_of(function, sample)
    changed = replace(claim, function=lambda x: exponential(x, factor=0.9))
    assert "left exceeds right" in recheck_on_box(changed, proof)


@pytest.mark.thorough
def test_the_prover_takes_inequalities_that_are_no_sums_of_squares():
    def wave(x, *, factor=1.0):
        r"""$$e^{\sin x} \le 5/2$$"""
        return jnp.exp(jnp.sin(x)), 2.5 * factor + 0 * x

    claim = stated(wave, drawn(0, 1))
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert proof.method == BOX
    assert recheck(claim, proof) == ""
    assert claim.expect.outcome is Outcome.SUPPORTED
