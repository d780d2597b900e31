"""Plain steps and the flow, measured against the attention SVM of the same problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import make_support_selection
from julistiono2024optimizing.library.token_selection.long_paths import LongPaths, long_paths

STEPS, RATE, NORM = 200, 0.5, 0.4
CLOCKS = ((100, 30.0), (400, 20.0))


@pytest.fixture(scope="module")
def found() -> LongPaths:
    data = jax.vmap(make_support_selection)(jax.random.split(jax.random.key(0), 2))
    return long_paths(data, jnp.full((2, 4, 4), NORM / 4), 2.0, RATE, STEPS, CLOCKS, 12)


@pytest.mark.thorough
def test_paths_end_where_their_clocks_say(found):
    assert np.nanmax(found.log_k[0], axis=1) == pytest.approx(np.log(STEPS))
    for norm, (_, reach) in zip(found.norm[1:], CLOCKS, strict=True):
        # Each step adds its length to the norm of the start, less what turns it.
        ends = np.nanmax(norm, axis=1)
        assert (ends <= NORM + reach).all()
        assert (ends > 0.9 * reach).all()


@pytest.mark.thorough
def test_the_flow_passes_the_end_of_the_plain_steps(found):
    """Euler's method on either clock: at one time the norms agree up to the steps' sizes."""
    last, end = np.nanmax(found.log_k[0], axis=1), found.norm[0][:, -1]
    for log_k, norm, (steps, reach) in zip(found.log_k[1:], found.norm[1:], CLOCKS, strict=True):
        for e in range(2):
            kept = ~np.isnan(log_k[e])
            at = np.interp(last[e], log_k[e, kept], norm[e, kept])
            assert abs(at - end[e]) < 2 * reach / steps + 0.5 * RATE


def test_the_direction_turns_to_the_svm(found):
    assert found.solved.all()
    assert (found.svm_norm > 0).all()
    assert (found.cone_width > 0).all()
    first, last = found.divergence[1][:, 1], np.nanmin(found.divergence[1], axis=1)
    assert (last < 0.1 * first).all()


def test_what_lies_past_the_end_of_a_path_is_not_a_number(found):
    for axis in (found.norm, found.divergence):
        np.testing.assert_array_equal(np.isnan(axis), np.isnan(found.log_k))
