"""The largest norm over offsets, against dense products turned by complex numbers."""

import numpy as np
import pytest

from attlas.bounds.attention.rotary_core_norm import rotary_core_norm
from attlas.core.errors import UserError


def turned(W, angle, interleaved):
    pairs = angle.size
    rows = W.copy()
    first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
    second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
    z = (W[:, first] + 1j * W[:, second]) * np.exp(1j * angle)
    rows[:, first], rows[:, second] = z.real, z.imag
    return rows


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("interleaved", [True, False])
def test_all_offsets_are_seen(interleaved, causal):
    rng = np.random.default_rng(2)
    W_Q, W_K, theta = rng.normal(size=(2, 7, 5)), rng.normal(size=(2, 7, 5)), np.array([1.0, 0.1])
    offsets = range(6) if causal else range(-5, 6)
    exact = [
        max(np.linalg.norm(turned(Q, m * theta, interleaved) @ K.T, 2) for m in offsets)
        for Q, K in zip(W_Q, W_K, strict=True)
    ]
    found = np.asarray(rotary_core_norm(W_Q, W_K, theta, 6, interleaved, causal))
    assert np.all(found >= np.array(exact) * (1 - 1e-15))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.mark.parametrize(
    ("pairs", "tokens", "said"),
    [
        (2, 1, "^frequencies turn 2 pairs of k = 3 coordinates: give at most k / 2$"),
        (1, 0, "^tokens = 0: it must be finite and at least 1$"),
        (
            1,
            10**15,
            "^an angle of each of 1000000000000000 positions takes .* GiB here: give fewer$",
        ),
    ],
)
def test_angles_that_there_are_not_are_one_line(pairs, tokens, said):
    with pytest.raises(UserError, match=said):
        rotary_core_norm(np.ones((2, 3)), np.ones((2, 3)), np.ones(pairs), tokens)
