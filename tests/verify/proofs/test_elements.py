"""The algebra of elements and nodes: quotients, roots, exponentials, signs and points."""

import random
from fractions import Fraction

import numpy as np
import pytest

from attlas.verify.proofs import points
from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Atom, Element, Field, LargeError, NotProvedError
from attlas.verify.proofs.exact_rules import Exact, meant
from attlas.verify.proofs.functions import CaseError, Functions, UndefinedError
from attlas.verify.proofs.guard import covers, evaluated
from attlas.verify.proofs.identities import Case
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import Point, PointError
from attlas.verify.proofs.symbols import Domain, domain_of


def field(exact=False):
    """A field with a point at which every root of the test exists."""
    return Field(Point("test"), exact=exact)


def symbols(of, *names, positive=False):
    return [Node.of(of.symbol(Atom(name, positive))) for name in names]


@pytest.mark.parametrize("exact", [False, True])
def test_quotients_are_added_multiplied_and_cancelled(exact):
    x, y = symbols(field(exact), "x", "y")
    gap = 1 / (x - y) - 1 / (x + y) - 2 * y / (x * x - y * y)
    assert gap.is_zero()
    assert not (gap + 1).is_zero()
    ratio = ((x + y).to_the(3) / (x + y).to_the(2)).expanded()
    assert ratio.below == ()
    assert len(ratio.top) == 2
    with pytest.raises(NotProvedError, match="a denominator"):
        (x / (x - x)).expanded()


def test_polynomials_keep_their_order_and_divide():
    rng = random.Random(0)
    for _ in range(50):
        a, b = (
            {((0, rng.randrange(3)), (1, rng.randrange(3))): rng.randrange(1, 5) for _ in range(3)}
            for _ in range(2)
        )
        a, b = ({tuple(p for p in t if p[1]): c for t, c in v.items()} for v in (a, b))
        stripped = poly.shift(b, poly.power(poly.content(b), -1))
        if len(stripped) > 1:
            assert poly.quotient(poly.multiply(a, stripped), stripped, 50) == a
            roots = {tuple((k, Fraction(e, 3)) for k, e in t): c for t, c in stripped.items()}
            assert poly.quotient(poly.multiply(a, roots), roots, 50) == a
            more = poly.add(poly.multiply(a, stripped), {((9, 1),): 1})
            assert poly.quotient(more, stripped, 50) is None


def test_powers_of_positive_numbers_have_their_laws():
    f = Functions(field())
    x, y = symbols(f.field, "x", "y", positive=True)
    half = Fraction(1, 2)
    assert (f.power(x * y, half) - f.power(x, half) * f.power(y, half)).is_zero()
    assert (f.exp(f.log(x) * half) - f.power(x, half)).is_zero()
    assert (f.log(x / y) - f.log(x) + f.log(y)).is_zero()
    assert (f.exp(x + y) - f.exp(x) * f.exp(y)).is_zero()
    assert not (f.log(x) - x).is_zero()
    assert f.sign(x * y + 1) == 1


def test_a_sign_that_is_open_is_a_case_and_an_undefined_root_is_said():
    f = Functions(field())
    x, y = symbols(f.field, "x", "y")
    with pytest.raises(CaseError, match="x"):
        f.absolute(x)
    assert f.sign(x * x + y * y) == 1
    assert len(f.excluded) == 1
    with pytest.raises(UndefinedError):
        f.log(-(x * x + 1))
    assert Functions(f.field, {"x": -1}).sign(x) == -1
    assert f.compare(float("-inf"), x) == -1


def test_roots_exist_where_their_base_is_a_square():
    errors = 0
    for attempt in range(20):
        f = Functions(Field(Point("roots", attempt)))
        x, y = symbols(f.field, "x", "y", positive=True)
        try:
            root = f.power(x + y, Fraction(1, 2))
        except PointError:
            errors += 1
            continue
        assert (root * root - x - y).is_zero()
    assert 0 < errors < 20


def test_the_prime_of_a_point_is_one_with_roots():
    point = Point("a prime")
    assert point.prime % 4 == 3
    assert all(pow(a, point.prime - 1, point.prime) == 1 for a in (2, 3, 5, 7))
    assert point.prime.bit_length() == points.BITS
    assert all(point.is_square(k) for k in (2, 3, 5, 7, 11, 13, 6, 30))
    assert not point.is_square(point.prime - 1)
    square = point.value(True)
    assert pow(point.power(square, Fraction(5, 3)), 3, point.prime) == pow(square, 5, point.prime)


def test_what_takes_long_is_not_expanded():
    f = Functions(field())
    x = symbols(f.field, *(f"x{k}" for k in range(30)))
    total = x[0]
    for each in x[1:]:
        total = total + each
    large = total.to_the(9)
    with pytest.raises(LargeError):
        large.expanded()
    assert (f.exp(large) * f.exp(-large) - 1).is_zero()
    assert (f.power(large * large, Fraction(1, 2)).to_the(2) - large * large).is_zero()


def test_numbers_are_read_as_they_are_meant():
    assert meant(0.1) == Fraction(1, 10)
    assert meant(2 / 7) == Fraction(2, 7)
    assert meant(np.pi) == Fraction(np.pi)
    exact = Exact(Functions(field()))
    array = exact.exact([1.0, np.inf])
    assert array[0].number == 1
    assert array[1] == np.inf


def test_the_domain_follows_the_draws():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    batch = {"x": x, "p": x[:, 0] ** 2 + 1, "k": np.arange(40) % 3, "z": np.c_[x, np.ones(40)]}
    domain = domain_of(batch, set(batch), False)
    assert dict(domain.signs) == {"p": 1, "x": 0, "z": 0}
    assert len(domain.values) == 3
    assert domain.fixed["z"][2] == 1
    assert domain.links["z[1]"] == ("x", (1,), 1)
    assert "for each of the 3 values of k" in domain.sentence(True)
    with pytest.raises(NotProvedError, match="more than 16 values"):
        domain_of({"k": np.arange(40)}, {"k"}, False)


def test_what_lies_outside_is_not_covered():
    of = field()
    x = of.symbol(Atom("x", False))
    domain = Domain({"x": 0}, {"x": ()}, {"x": np.array(np.nan)}, ({},))
    above = Case({"x-1": 1}, {"x-1": x - 1}, 0, 200)
    assert covers(domain, (above,), {"x": np.array(2.0)})
    assert not covers(domain, (above,), {"x": np.array(0.0)})
    assert not covers(domain, (above,), {"x": np.array(1.0)})
    value, size = evaluated(Element(of, {((0, 2),): 1, (): -3}), {"x": 2.0})
    assert (value, size) == (1.0, 7.0)
