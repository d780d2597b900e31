"""The estimated operations of a program: all steps of its loops, and no clock."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.sides import Doubling
from attlas.claims.statement import rate
from attlas.verify.evidence import compile_program
from attlas.verify.operations import counted_operations, operations


def descent(backend="jax", steps=None):
    """The rate of a descent, which makes a step for each unit of its largest scale."""

    @rate(
        scales=Doubling("t", 16, count=steps or 8),
        sample=lambda rng, count: {"w": rng.normal(size=(count, 5))},
        controls=[Control("faster", power=2)],
        backend=backend,
    )
    def falls(w, t, *, power=1):
        r"""$$e^{-t} = O(1 / t)$$"""
        if backend == "numpy":
            return np.exp(-1.0 * t) * np.abs(w).sum(), (1.0 * t) ** -power
        sums = jax.lax.scan(lambda v, _: (v / 2, jnp.abs(v).sum()), w, None, length=int(t[-1]))[1]
        return sums[t - 1], (1.0 * t) ** -power

    return falls


@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_twice_as_many_steps_are_twice_as_many_operations(backend):
    few, many = (
        operations(claim, compile_program(claim), claim.draw(0, 8))
        for claim in (descent(backend), descent(backend, steps=11))
    )
    assert 7 < many / few < 8.5


def test_matrices_count_by_their_sizes():
    def counted(function, *arrays):
        return counted_operations(jax.make_jaxpr(function)(*arrays).jaxpr)

    small, large = jnp.eye(50), jnp.eye(200)
    for function in (jnp.matmul, lambda a, b: jnp.linalg.eigvalsh(a) + b[0]):
        assert 30 < counted(function, large, large) / counted(function, small, small) < 65

    def loop(x):
        return jax.lax.while_loop(lambda v: v < 1e9, lambda v: 2 * v, x)

    def choice(x):
        return jax.lax.cond(x > 0, jnp.sin, lambda v: jnp.ones((300, 300)).sum() + v, x)

    assert counted(loop, 1.0) > 1e5
    assert counted(choice, 1.0) > 9e4
