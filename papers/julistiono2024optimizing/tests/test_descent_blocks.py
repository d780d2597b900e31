"""Blocks of steps against steps taken one at a time, at two orders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import make_support_selection
from attlas.losses.margin_loss import margin_loss
from attlas.optim.mirror_descent import mirror_step, potential_gradient
from julistiono2024optimizing.library.token_selection.descent_blocks import descent_blocks
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient

ETA, LOGISTIC = 0.05, margin_loss("logistic")


def ends(p, begun, order):
    """The distance of blocks from steps after 10 times as many steps, over the way of these."""
    data = make_support_selection(jax.random.key(0))

    def taken(W, steps):
        def step(_, at):
            return mirror_step(at, selection_gradient(at, data), ETA, p)

        return jax.lax.fori_loop(0, steps, step, W)

    first = taken(jnp.eye(4) + 0.1, begun)
    last = potential_gradient(taken(first, 9 * begun), p)
    settings = {"p": jnp.asarray(p), "loss": LOGISTIC, "blocks": 64, "length": np.log(10) / 64}
    dual = potential_gradient(first, p)
    path = descent_blocks(data, dual, jnp.log(ETA), steps=begun, order=order, **settings)
    assert path.log_k[-1] == pytest.approx(float(jnp.log(10 * begun)))
    return float(jnp.linalg.norm(path.dual[-1] - last) / jnp.linalg.norm(last - dual))


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_what_two_terms_leave_falls_with_the_square_of_the_first_step(p):
    early, late = ends(p, 200, 2), ends(p, 2000, 2)
    assert late < early / 30
    assert late < 1 / 2000**2
    assert ends(p, 2000, 1) > 100 * late
