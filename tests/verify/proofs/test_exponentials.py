"""Exponentials of large expressions, and primes that are large enough for their degrees."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.proof import Proof
from attlas.claims.statement import identity
from attlas.verify.proofs.elements import Atom, Field, NotProvedError
from attlas.verify.proofs.exact_rules import meant, meant_square
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.identities import read_by
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.paths import Paths
from attlas.verify.proofs.points import Point
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck


def entries(names, expanded=40):
    """Functions that expand little, and symbols."""
    field = Field(Point("test"), expanded=expanded)
    return Functions(field), [Node.of(field.symbol(Atom(name, False))) for name in names]


def test_exponentials_of_large_exponents_are_products_of_others():
    functions, (a, b, c) = entries("abc")
    large = [(a + 2 * b + 3 * c + k).to_the(6) for k in (1, 2, 3)]
    first = functions.exp(large[0] - large[2])
    second = functions.exp(large[1] - large[2])
    assert any(atom.kind == "large" for atom in functions.field.atoms)
    assert (functions.exp(large[0] - large[1]) - first / second).is_zero()
    assert (functions.exp(large[2] - large[0]) * first - 1).is_zero()
    assert (functions.exp(large[0] + large[1] - large[2] - large[2]) - first * second).is_zero()
    assert not (functions.exp(large[0] + large[2]) - first * second).is_zero()
    assert functions.degrees > 0


def row_of(claim):
    with jax.enable_x64(True):
        batch = claim.draw(0, claim.count)
        return {name: value[0] for name, value in batch.items()}


def logits(rng, count):
    return {"x": rng.normal(size=(count, 3)), "w": rng.normal(size=(count, 3, 3))}


@identity(sample=logits, controls=[Control("no shift in one", shift=1.0)])
def shifted_twice(x, w, *, shift=0.0):
    r"""$$\mathrm{softmax}(z - z_1) = \mathrm{softmax}(z - z_2)$$ of logits of logits."""
    hidden = w @ jax.nn.softmax(w @ jax.nn.softmax(w @ x))
    left, right = jnp.exp(hidden - hidden[0]), jnp.exp(hidden - hidden[1])
    right = right + shift * jnp.arange(3.0)
    return left / left.sum(), right / right.sum()


def test_a_softmax_does_not_depend_on_its_shift_however_deep_it_lies():
    row = row_of(shifted_twice)
    with jax.enable_x64(True):
        read = read_by(shifted_twice, row)
        assert Paths(shifted_twice, row, read, {}, "test").along(row).bits > 64
        with pytest.raises(NotProvedError, match="does not vanish"):
            Paths(shifted_twice, row, read, {"shift": 1.0}, "test").along(row)


@identity(
    sample=lambda rng, count: {"x": rng.normal(size=(count, 2))},
    controls=[Control("one more", more=1.0)],
)
def iterated(x, *, more=0.0):
    r"""$$f^{8}(x) = f(f^{7}(x))$$ of a rational map of growing degree."""
    y = z = x
    for _ in range(105):
        y = y * y / (1 + y[::-1] ** 2)
        z = z * z / (z[::-1] ** 2 + 1 + more)
    return y, z


def test_a_larger_prime_is_taken_where_the_degree_needs_one():
    row = row_of(iterated)
    with jax.enable_x64(True):
        path = Paths(iterated, row, read_by(iterated, row), {}, "test").along(row)
    assert path.bits > 64
    field = path.decisions.field
    assert field.point.prime.bit_length() > 256


def test_a_multiple_of_a_root_stands_for_a_root_in_each_way_to_compute_it():
    for n in (2, 3, 6, 11):
        for fraction in (Fraction(5), Fraction(1, 5), Fraction(3, 7)):
            root = math.sqrt(n)
            ways = (
                float(fraction) * root,
                float(fraction) / root,
                1 / (float(fraction) * root),
            )
            squares = (fraction**2 * n, fraction**2 / n, 1 / (fraction**2 * n))
            for way, square in zip(ways, squares, strict=True):
                assert meant_square(way) == meant_square(-way) == square
                # No way of computing it ends so far away.
                assert meant_square(way * (1 + 1e-15)) is None
                assert meant_square(way * (1 - 1e-15)) is None


def test_no_float_beside_a_fraction_stands_for_it():
    for number in (1.0, 1.5, 2 / 3, 5 / 7, 12.0):
        for units in (-2, -1, 1, 2):
            near = number + units * math.ulp(number)
            assert meant_square(near) is None
            assert meant(near) == Fraction(near)


@identity(
    sample=lambda rng, count: {"x": rng.normal(size=(count, 2))},
    controls=[Control("three units more", units=3)],
)
def scaled(x, *, units=0):
    r"""$$5 x / \sqrt 2 = x \sqrt{12.5}$$"""
    scale = 1 / (0.2 * math.sqrt(2))
    return (scale + units * math.ulp(scale)) * x, math.sqrt(12.5) * x


def test_a_multiple_of_a_root_is_proved_and_its_neighbour_is_not():
    proof = prove(scaled)
    assert isinstance(proof, Proof)
    assert "the root of a whole number" in proof.trusted
    assert recheck(scaled, Proof.read(proof.document()), seed=3) == ""
    for units in (-1, 3):

        @identity(sample=scaled.sample, controls=[Control("more", units=9)])
        def beside(x, *, units=units):
            r"""$$5 x / \sqrt 2 = x \sqrt{12.5}$$"""
            return scaled.function(x, units=units)

        assert "does not vanish" in str(prove(beside))


def test_a_quotient_by_a_root_stands_for_the_root_of_a_fraction():
    for n in (2, 3, 6, 11):
        for k in (1, 5, 7):
            assert meant_square(k / np.sqrt(n)) == pytest.approx(k * k / n, rel=0)
            assert meant_square(-k / np.sqrt(n)) == meant_square(k / np.sqrt(n))
            assert meant_square(k / np.sqrt(n) * (1 + 1e-15)) is None
