"""Gradient ascent: the best admissible point of the path, and where there is a slope."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Ball
from attlas.claims.statement import inequality
from attlas.verify.ascent import ascend, has_slope

A = np.array([[2.0, 1.0], [0.0, 1.0]])


@inequality(domains=[Ball("x", 1.0, shape=2)], controls=[Control("half", factor=0.5)])
def quadratic(x, *, factor=1.0):
    r"""$$\|A x\| \le \|A\|$$"""
    return jnp.linalg.norm(A @ x), factor * jnp.asarray(np.linalg.norm(A, 2))


def test_most_starts_come_to_the_leading_singular_vector():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        batch = quadratic.draw(0, 16)
        ended = ascend(quadratic, 100)(batch)
    leading = np.linalg.svd(A)[2][0]
    cosine = np.abs(np.asarray(ended["x"]) @ leading)
    # A start of a thousandth of the radius moves in units of its own size: 100 steps are few.
    assert (cosine > 0.99).mean() > 0.6
    assert np.linalg.norm(ended["x"], axis=1).max() <= 1


def test_a_host_computation_has_no_slope():
    def on_host(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        norm = jax.pure_callback(lambda v: np.linalg.norm(v), shape, x, vmap_method="sequential")
        return norm, jnp.asarray(1.0)

    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        batch = quadratic.draw(0, 2)
        assert has_slope(quadratic, batch)
        assert not has_slope(replace(quadratic, function=on_host), batch)
        assert not has_slope(replace(quadratic, search_over=()), batch)
