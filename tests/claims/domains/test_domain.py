"""Every domain: its draws and its projections lie in it, and moved points come back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.domains.domain import Domain
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
from attlas.core.errors import UserError

EACH = (
    Real("x", shape=(2, 3)),
    Box("x", -1.0, 2.0, shape=4),
    Box("x", -np.inf, 0.0, shape=4),
    Positive("x", shape=4),
    Nonnegative("x", shape=()),
    Ball("x", 0.3, shape=(3, 2)),
    Ball("x", "R", shape=(3, 2), rows=True),
    Ball("x", 2.0, norm=1, shape=5),
    Ball("x", 2.0, norm=np.inf, shape=5),
    Ball("x", 2.0, norm="spectral", shape=(3, 2)),
    Ball("x", 2.0, norm="nuclear", shape=(2, 3)),
    Sphere("x", "R", shape=(4, 3), rows=True),
    Simplex("x", shape=(2, 3, 3), rows=True),
    Simplex("x", 2.0, shape=3),
    Ordered("x", shape=5),
    OneOf("x", (1.5, 2.0), shape=2),
    Rank("x", 2, shape=(4, 3)),
    Semidefinite("x", shape=(3, 3)),
    Orthogonal("x", shape=(2, 3)),
)


@pytest.mark.parametrize("domain", EACH, ids=repr)
def test_draws_and_projections_lie_in_the_domain(domain: Domain):
    rng = np.random.default_rng(1)
    radius = rng.uniform(0.1, 3, size=64)
    x = domain.draw(rng, 64, {}, {"R": radius})
    batch = {"x": jnp.asarray(x, dtype=float), "R": jnp.asarray(radius)}
    inside, back = (jax.jit(jax.vmap(f)) for f in (domain.holds, domain.project))
    assert bool(inside(batch).all())
    # What lies inside stays, up to rounding.
    np.testing.assert_allclose(back(batch), batch["x"], rtol=1e-10, atol=1e-12)
    moved = batch["x"] + jnp.asarray(
        rng.normal(size=x.shape) * 10 ** rng.uniform(-3, 2, (64,) + (1,) * (x.ndim - 1))
    )
    near = back({**batch, "x": moved})
    assert bool(inside({**batch, "x": near}).all())
    # The nearest point is no farther than any drawn one, of the same parameters.
    if not domain.reads():
        far = np.sqrt(((np.asarray(moved)[:, None] - x[None]) ** 2).reshape(64, 64, -1).sum(axis=2))
        own = np.sqrt(((np.asarray(moved - near)) ** 2).reshape(64, -1).sum(axis=1))
        assert (own <= far.min(axis=1) * (1 + 1e-9) + 1e-9).all()
    if type(domain) is not Real and domain.moves:
        assert not bool(inside({**batch, "x": moved}).all())


def test_the_condition_is_written_for_a_reader():
    assert Ball("W", 2.0).condition() == r"$\|W\|_{2} \le 2$"
    assert Sphere("key", "R", rows=True).condition() == r"$\|\mathrm{key}_i\|_2 = R$ for each row"
    assert Box("x", -np.inf, 1.0).condition() == r"$x \le 1$"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Ball("W", -1.0), "give a positive number"),
        (lambda: Ball("W", 1.0, norm=3), "'nuclear'"),
        (lambda: Ball("W", 1.0, norm="spectral", shape=3), "two axes"),
        (lambda: Box("x", 1.0, 0.0), "above"),
        (lambda: Rank("W", 0), "whole number"),
        (lambda: Rank("W", 1, shape=3), "give 2"),
        (lambda: Simplex("a", shape=(2, 2)), "rows=True"),
        (lambda: Real("not a name"), "not the name"),
        (lambda: Real("x").sizes({}), "give its shape"),
        (lambda: Real("x", shape="n").sizes({}), "sizes="),
    ],
)
def test_a_wrong_declaration_is_one_line(make, told):
    with pytest.raises(UserError, match=told):
        make()


def test_a_domain_says_what_it_is_or_cannot_be_made():
    half = type("Half", (Domain,), {"text": lambda self, one, values: one})
    with pytest.raises(TypeError, match=r"abstract method.*contains\W+nearest\W+points"):
        half("x", shape=2)
