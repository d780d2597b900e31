"""Witnesses are shrunk inside what their sampler declares, and the simple one violates as well."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.claims.claim import Control, assume
from attlas.claims.domains.matrices import Orthogonal, Rank, Semidefinite
from attlas.claims.domains.vectors import (
    Ball,
    Box,
    Nonnegative,
    OneOf,
    Ordered,
    Positive,
    Real,
    Simplex,
    Sphere,
)
from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from attlas.verify.challenge import replay
from attlas.verify.check import check
from attlas.verify.registry import find_claims
from attlas.verify.shrink.drawn_numbers import drawn_numbers
from attlas.verify.shrink.membership import lies_in
from attlas.verify.shrink.shrinking import shrunk
from attlas.verify.shrink.simpler import rounded_entries, whole_arrays, zero_blocks
from attlas.verify.shrink.simplicity import cost
from attlas.verify.shrink.sizes import smaller
from attlas.verify.shrink.support import Support, drawn_supports, supports_of

PAPERS = (
    "deora2023optimization",
    "gu2024exploring",
    "julistiono2024optimizing",
    "liu2021analyzing",
    "trauger2023sequence",
)
half = Control("half of the right side", factor=0.5)


def eight(rng, count):
    """Eight entries between -3 and 3, and sixteen that nothing depends on."""
    return {"x": rng.uniform(-3, 3, size=(count, 8)), "y": rng.normal(size=(count, 16))}


@inequality(sample=eight, controls=[half])
def total(x, y, *, factor=1.0):
    r"""$$\sum_i x_i \le 2$$"""
    return jnp.sum(x) + 0 * y[0], factor * 2.0


def test_a_sum_ends_with_one_entry_of_three_and_what_is_irrelevant_with_zero():
    report = check(total, challenge=0)
    assert report.verdict.outcome is Outcome.VIOLATED
    small = report.shrunk
    assert small.arrays["x"].tolist() == [3.0] + [0.0] * 7
    assert not small.arrays["y"].any()
    assert small.as_drawn == ()
    assert float(small.left) == 3.0
    assert replay(total, dict(small.arrays)).outcome is Outcome.VIOLATED
    # Equal arguments give the same instance.
    again = shrunk(total, report.verdict.witness)
    assert all(np.array_equal(again.arrays[name], small.arrays[name]) for name in small.arrays)


def test_the_line_of_python_is_the_instance():
    small = shrunk(total, {"x": np.full(8, 0.8125), "y": np.full(16, 0.123456789)})
    seen = {}

    class Attlas:
        """Stands where the library would."""

        @staticmethod
        def replay(name, arrays):
            """What the line gives."""
            seen[name] = arrays

    exec(small.python(), {"attlas": Attlas})
    assert list(seen) == [total.name]
    arrays = {name: np.asarray(value) for name, value in seen[total.name].items()}
    assert replay(total, arrays).outcome is Outcome.VIOLATED
    assert r"x = 3 e_{1}" in small.latex()


@inequality(
    domains=[Ball("A", 2.0, shape=("n", "n"), norm="spectral")], sizes={"n": 4}, controls=[half]
)
def trace(A, *, factor=1.0):
    r"""$$\operatorname{tr} A \le 5$$"""
    return jnp.trace(A), factor * 5.0


@inequality(
    domains=[Semidefinite("A", shape=("n", "n")), Ball("v", 5.0, shape="n")],
    sizes={"n": 4},
    controls=[half],
)
def quadratic(A, v, *, factor=1.0):
    r"""$$v^\top A v \le \|v\|^2$$"""
    return v @ A @ v, factor * v @ v


@pytest.mark.thorough
def test_matrices_end_with_a_multiple_of_the_identity_and_sizes_with_the_smallest():
    small = shrunk(trace, {"A": 1.9 * np.eye(4) + 0.01})
    np.testing.assert_array_equal(small.arrays["A"], 2 * np.eye(3))
    assert "2 I_{3}" in small.latex()
    report = check(quadratic, challenge=0)
    assert {name: value.size for name, value in report.shrunk.arrays.items()} == {"A": 1, "v": 1}
    assert replay(quadratic, dict(report.shrunk.arrays)).outcome is Outcome.VIOLATED


@inequality(domains=[Simplex("p", shape="n")], sizes={"n": 6}, controls=[half])
def collision(p, *, factor=1.0):
    r"""$$\sum_i p_i^2 \le 1/4$$"""
    return jnp.sum(p**2), factor * 0.25


def test_a_distribution_stays_one():
    witness = check(collision, challenge=0).verdict.witness
    small = shrunk(collision, witness)
    assert small.arrays["p"].sum() == 1
    assert cost(small.arrays) < cost(witness)


def derived(rng, count):
    """A square that goes with its root, which alone is no instance."""
    x = rng.uniform(0.5, 2, size=(count, 3))
    return {"x": x, "square": x**2}


@inequality(sample=derived, controls=[half], not_attacked="for the test")
def roots(x, square, *, factor=1.0):
    r"""$$\sum_i x_i^2 \le 4$$"""
    return jnp.sum(square) + 0 * x[0], factor * 4.0


def test_arrays_that_a_sampler_computes_are_shrunk_by_what_it_draws():
    witness = {"x": np.array([1.5, 1.25, 1.1]), "square": np.array([1.5, 1.25, 1.1]) ** 2}
    small = shrunk(roots, witness)
    assert small.as_drawn == ()
    np.testing.assert_array_equal(small.arrays["square"], small.arrays["x"] ** 2)
    assert np.all((small.arrays["x"] >= 0.5) & (small.arrays["x"] <= 2))
    assert cost(small.arrays) < cost(witness)


def test_arrays_that_no_draws_give_stay_and_the_witness_says_so():
    def by_key(key, count):
        return {name: jnp.asarray(v) for name, v in derived(generator(key), count).items()}

    witness = {"x": np.array([1.5, 1.25, 1.1]), "square": np.array([1.5, 1.25, 1.1]) ** 2}
    small = shrunk(replace(roots, sample=by_key), witness)
    assert small.as_drawn == ("square", "x")
    assert all(np.array_equal(small.arrays[name], witness[name]) for name in witness)
    assert "as drawn   square, x: kept as it was, since no domain" in "\n".join(small.lines())


def units(rng, count):
    """A unit vector and a covariance, which no call draws as they are."""
    x, factor = rng.normal(size=(count, 6)), rng.normal(size=(count, 3, 3))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return {"u": unit, "C": factor @ np.swapaxes(factor, 1, 2)}


@inequality(sample=units, controls=[half])
def mass(u, C, *, factor=1.0):
    r"""$$\sum_i u_i \le 1$$"""
    return jnp.sum(u) + 0 * C[0, 0], factor * 1.0


@inequality(sample=units, controls=[half])
def spread(u, C, *, factor=1.0):
    r"""$$\operatorname{tr} C \le 3 \lambda_{\max}(C) / 2$$"""
    return jnp.trace(C) + 0 * u[0], factor * 1.5 * jnp.linalg.eigvalsh(C)[-1]


def test_unit_vectors_and_covariances_are_shrunk_by_their_draws():
    small = check(mass, challenge=0).shrunk
    assert np.count_nonzero(small.arrays["u"]) == 2
    assert not small.arrays["C"].any()
    np.testing.assert_allclose(np.linalg.norm(small.arrays["u"]), 1, rtol=1e-15)
    small = check(spread, challenge=0).shrunk
    np.testing.assert_array_equal(np.sort(np.diag(small.arrays["C"])), [0, 1, 1])
    assert np.count_nonzero(small.arrays["C"]) == 2
    assert np.count_nonzero(small.arrays["u"]) == 1
    # A witness that a search moved is none of the draws.
    u = np.array([3.0, 4.0, 1.0, 2.0, 0.5, 0.25])
    moved = {"u": u / np.linalg.norm(u), "C": np.diag([1.0, 2.0, 3.3]) + 0.125}
    assert cost(shrunk(mass, moved).arrays) < cost(moved)


def test_the_numbers_behind_a_drawn_instance_give_it_again():
    batch = spread.draw(0, 64)
    witness = {name: np.asarray(value)[5] for name, value in batch.items()}
    numbers = drawn_numbers(spread, witness, 0, 64)
    again = numbers.instances([numbers.start])
    for name, value in witness.items():
        np.testing.assert_array_equal(np.asarray(again[name])[0], value)
    assert drawn_numbers(ordered, {"x": np.ones(2)}, 0, 64) is None  # its arrays are searched over


DOMAINS = (
    Real("x", shape=4), Box("x", -1.0, 3.0, shape=4), Positive("x", shape=4),
    Nonnegative("x", shape=4), Ball("x", 2.0, shape=4), Ball("x", 2.0, norm=1, shape=4),
    Ball("x", 2.0, norm=np.inf, shape=4), Ball("x", 2.0, norm="spectral", shape=(3, 3)),
    Ball("x", 2.0, norm="nuclear", shape=(3, 3)), Sphere("x", 1.7, shape=5),
    Simplex("x", shape=5), Simplex("x", shape=(2, 3), rows=True), Ordered("x", shape=4),
    OneOf("x", (1.5, 2.0, 4.0), shape=4), Rank("x", 1, shape=(3, 3)),
    Semidefinite("x", shape=(3, 3)), Orthogonal("x", shape=(3, 3)),
)  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: f"{type(d).__name__}-{d.axes}")
def test_a_shrunken_witness_lies_in_its_domain_exactly_and_violates(domain):
    @inequality(domains=[domain], controls=[half])
    def first(x, *, factor=1.0):
        r"""$$x_1 + x_2 \le 1/2$$"""
        return x.ravel()[0] + x.ravel()[-1], factor * 0.5

    batch = domain.draw(np.random.default_rng(1), 256, {}, {})
    flat = batch.reshape(len(batch), -1)
    start = batch[np.flatnonzero((flat[:, 0] + flat[:, -1] > 0.6) & (flat != 0).any(axis=1))[-1]]
    small = shrunk(first, {"x": start})
    x = small.arrays["x"]
    assert cost({"x": x}) <= cost({"x": start})
    assert lies_in(domain, {"x": x}) or np.array_equal(x, start)
    assert replay(first, {"x": x}).outcome is Outcome.VIOLATED
    if isinstance(domain, Real | Box | Nonnegative | Ball | Sphere | Simplex | Ordered):
        assert cost({"x": x}) < cost({"x": start})


def test_a_declared_sum_ends_with_three():
    @inequality(domains=[Box("x", -3.0, 3.0, shape=8)], controls=[half])
    def sum_of_declared(x, *, factor=1.0):
        r"""$$\sum_i x_i \le 2$$"""
        return jnp.sum(x), factor * 2.0

    small = check(sum_of_declared, challenge=0).shrunk
    assert small.arrays["x"].tolist() == [3.0] + [0.0] * 7


@inequality(
    sample=lambda rng, count: {"x": rng.uniform(1, 3, size=(count, 2))},
    assumptions=[assume("$x_1 < x_2$", lambda x: x[0] < x[1])],
    search_over="x",
    controls=[half],
)
def ordered(x, *, factor=1.0):
    r"""$$x_1 x_2 \le 3$$"""
    return x[0] * x[1], factor * 3.0


def test_the_range_of_a_draw_and_the_assumptions_are_kept():
    small = shrunk(ordered, {"x": np.array([1.77, 2.91])})
    x = small.arrays["x"]
    assert 1 <= x[0] < x[1] <= 3
    assert x[0] * x[1] > 3
    assert x.tolist() == [2.0, 3.0]


@inequality(
    sample=lambda rng, count: {"t": rng.uniform(0, 4, size=count), "k": rng.integers(1, 9, count)},
    controls=[half],
)
def scalars(t, k, *, factor=1.0):
    r"""$$t k \le 5$$"""
    return t * jnp.asarray(k, float), factor * 5.0


def test_scalars_and_integers_are_shrunk():
    small = shrunk(scalars, {"t": np.asarray(3.912), "k": np.asarray(7)})
    t, k = float(small.arrays["t"]), int(small.arrays["k"])
    assert t.is_integer()
    assert (0 <= t <= 4, 1 <= k <= 8, t * k > 5) == (True, True, True)
    assert small.arrays["k"].dtype.kind == "i"


def test_what_holds_is_not_shrunk():
    assert shrunk(total, {"x": np.zeros(8), "y": np.zeros(16)}) is None
    assert check(total, challenge=0).controls[0].verdict.outcome is Outcome.VIOLATED


def test_laws_are_read_from_the_sampler():
    def draw(rng, count):
        x = rng.normal(size=(count, 2))
        return {
            "k": rng.integers(1, 4, size=count),
            "u": 2 * rng.random((count, 3)) - 1,
            "x": x,
            "more": x[:, 0],
            "scaled": rng.normal(size=(count, 2)) * rng.uniform(size=(count, 1)),
        }

    assert drawn_supports(draw, 0) == {
        "k": Support(1.0, 3.0, True),
        "u": Support(-1.0, 1.0),
    }
    assert drawn_supports(lambda key, count: {"x": jnp.zeros(count)}, 0) == {}
    supports, kept = supports_of(ordered, {"x": np.array([0.5, 9.0])}, 0)
    # Outside the law of its draw, an array that a search moves stays in the hull of all entries.
    assert (supports["x"].low, supports["x"].high) == (0.5, 9.0)
    assert kept == set()


def test_simpler_forms_begin_with_zero_and_the_identity_and_sizes_lose_one_coordinate():
    arrays, supports = {"A": np.diag([1.5, 2.5])}, {"A": Support(-3.0, 3.0)}
    first, second, *_ = (change["A"] for change in whole_arrays(arrays, supports))
    assert not first.any()
    np.testing.assert_array_equal(second, np.eye(2))
    assert sum(not change["A"].any() for change in zero_blocks(arrays, supports)) == 0
    assert any(change["A"][0, 0] == 1 for change in rounded_entries(arrays, supports))
    four = {"A": np.diag([4.0, 3.0, 2.0, 1.0])}
    shapes = [change["A"] for change in smaller(trace, four, {"A": Support()}, 0)]
    np.testing.assert_array_equal(shapes[0], np.diag([4.0, 3.0, 2.0]))
    assert list(smaller(trace, four, {}, 0)) == []


def test_a_long_instance_has_no_line_of_python_and_names_its_size():
    x = np.random.default_rng(0).normal(size=(20, 20))
    witness = ShrunkWitness("a/b", {"long_name": x}, (), "2", "1", "confirmed", 1)
    assert witness.python() == ""
    assert (
        witness.latex()
        == r"\mathrm{long\_name} = (400 \text{ entries}) \in \mathbb{R}^{20 \times 20}"
    )
    assert witness.ratio == 2
    negative = ShrunkWitness("a/b", {"v": np.array([0.0, -1.0, 1e-30])}, (), "-2", "1", "", 1)
    assert negative.ratio is None
    assert negative.latex() == r"v = (0, -1, 1 \cdot 10^{-30})"


@pytest.mark.thorough
@pytest.mark.parametrize("paper", PAPERS)
def test_an_erratum_is_no_more_complex_than_before_and_violates_on_replay(paper):
    violated = [each for each in find_claims(paper) if each.expect.outcome is Outcome.VIOLATED]
    errata = [each for each in violated if each.witness is not None]
    tried = 0
    with jax.numpy_rank_promotion("allow"):
        for claim in errata[:2]:
            before = {
                k: np.asarray(v)
                for k, v in (check(claim, challenge=0).verdict.witness or {}).items()
            }
            small = shrunk(claim, before)
            if small is not None:
                assert cost(small.arrays) <= cost(before), claim.name
                assert replay(claim, dict(small.arrays)).outcome is Outcome.VIOLATED, claim.name
                tried += 1
    assert tried
