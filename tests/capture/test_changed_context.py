"""Contexts of changed maps, and what maps are, on tensors that are made by hand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.capture.changed_context import (  # noqa: E402
    with_rounded_logits,
    with_shared_map,
    without_token,
)
from attlas.capture.measured_maps import measured_maps  # noqa: E402
from attlas.torch.attention_trace import Attended  # noqa: E402


def attended(own=None):
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    logits = (queries @ keys.transpose(-1, -2) / 2).masked_fill(~mask, -1e9)
    every = logits if own is None else torch.cat([logits, own], dim=-1)
    maps = every.softmax(-1)[..., :5]
    return Attended(queries, keys, logits, maps, values, maps @ values, own)


def test_a_sink_of_the_model_keeps_its_share():
    own = torch.full((2, 3, 5, 1), 1.5, dtype=torch.float64)
    seen = attended(own)
    hidden = without_token(seen, [1], 0)
    rest = seen.weights[:, 1].clone()
    rest[:, 1:, 0] = 0
    scale = torch.ones(2, 5, 1, dtype=torch.float64)
    scale[:, 1:] = 1 / (1 - seen.weights[:, 1, 1:, :1])
    torch.testing.assert_close(hidden[:, 1], scale * rest @ seen.values[:, 1])
    torch.testing.assert_close(hidden[:, [0, 2]], seen.context[:, [0, 2]])


def test_only_the_second_head_takes_the_map_of_the_first():
    seen = attended()
    shared = with_shared_map(seen, 2, 0)
    torch.testing.assert_close(shared[:, 0], seen.weights[:, 2] @ seen.values[:, 0])
    torch.testing.assert_close(shared[:, 1:], seen.context[:, 1:])


def test_logits_are_rounded_and_masks_stay():
    seen = attended()
    torch.testing.assert_close(with_rounded_logits(seen, "float64"), seen.context)
    moved = (with_rounded_logits(seen, "float16") - seen.context).abs().amax((0, 1, 3))
    assert moved[0] == 0  # one token alone has all the weight, masks are no numbers of float16
    assert 0 < moved.max() < 0.01


def test_maps_are_measured_head_by_head():
    seen = attended()
    first, equal, products, logits = measured_maps(seen, 4)
    np.testing.assert_allclose(first[1, 2], seen.weights[1, 2, 1:4, 0].mean())
    np.testing.assert_allclose(equal, np.mean([1 / 2, 1 / 3, 1 / 4]))
    every = (seen.queries @ seen.keys.transpose(-1, -2)).abs()
    np.testing.assert_allclose(products[0, 1], every[0, 1].max())
    np.testing.assert_allclose(logits[0, 1], (every[0, 1] / 2).tril().max())
