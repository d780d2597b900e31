"""What declared domains give a claim."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Ball, OneOf, Positive, Sphere
from attlas.claims.statement import inequality
from attlas.core.errors import UserError
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]


def test_one_declaration_draws_filters_and_projects():
    @inequality(
        domains=[
            Positive("R", shape=()),
            Ball("x", "R", shape="d"),
            OneOf("p", (1.0, 2.0), shape=()),
        ],
        sizes={"d": 3},
        quantities="d",
        controls=HALF,
    )
    def radius(x, R, p, *, factor=1.0):
        r"""$$\|x\| \le R p$$"""
        return jnp.linalg.norm(x), factor * R * p

    assert radius.search_over == ("R", "x")
    assert [a.text for a in radius.assumptions] == [
        "$R > 0$",
        r"$\|x\|_{2} \le R$",
        r"$p \in \{1, 2\}$",
    ]
    report = check(radius, challenge=0)
    assert report.defects == ()
    assert report.verdict.applicable == 64
    moved = radius.project_instance({"R": jnp.asarray(1.0), "x": jnp.array([3.0, 4.0, 0.0])})
    np.testing.assert_allclose(moved["x"], [0.6, 0.8, 0.0], rtol=1e-12)
    assert radius.sized(d=5).draw(0, 4)["x"].shape == (4, 5)


def test_an_array_that_the_sampler_computes_is_not_moved_away_from():
    def solved(rng, count):
        x = rng.normal(size=(count, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return {"x": x, "half": x / 2}

    @inequality(sample=solved, domains=[Sphere("x")], controls=[Control("tenth", factor=0.1)])
    def consistent(x, half, *, factor=1.0):
        r"""$$x_1 \le 2 h_1 + 1$$"""
        return x[0], factor * (2 * half[0] + 1)

    assert consistent.search_over == ()

    @inequality(
        sample=solved,
        domains=[Sphere("x")],
        recertify=lambda x: {"half": x / 2},
        controls=[Control("tenth", factor=0.1)],
    )
    def again(x, half, *, factor=1.0):
        r"""$$x_1 \le 2 h_1 + 1$$"""
        return x[0], factor * (2 * half[0] + 1)

    assert again.search_over == ("x",)


@pytest.mark.parametrize(
    ("domains", "told"),
    [
        ([Ball("x", "R", shape=2), Positive("R", shape=())], "before it"),
        ([Ball("x", 1.0, shape=2), Ball("x", 2.0, shape=2)], "two domains"),
        (["x"], "not a domain"),
        ([Ball("x", 1.0, shape=2), Ball("y", 1.0, shape=2)], "no array"),
        ([Ball("x", 1.0)], "shape="),
    ],
)
def test_declarations_that_do_not_fit_are_refused(domains, told):
    with pytest.raises(UserError, match=told):

        @inequality(domains=domains, controls=HALF)
        def wrong(x, *, factor=1.0):
            r"""$$\|x\| \le 1$$"""
            return jnp.linalg.norm(x), factor


def test_sizes_must_reach_the_sampler():
    def fixed(rng, count):
        return {"x": rng.uniform(size=(count, 2))}

    with pytest.raises(UserError, match="takes no size"):

        @inequality(sample=fixed, sizes={"n": 2}, controls=HALF)
        def wrong(x, *, factor=1.0):
            r"""$$x_1 \le 1$$"""
            return x[0], factor
