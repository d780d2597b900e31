"""Arguments and gradients that are refused, each in one line with its value."""

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.torch import LpMirrorDescent  # noqa: E402


def test_what_cannot_be_trained_is_refused_in_one_line():
    for settings, message in (
        ({"lr": -0.1}, r"lr = -0\.1 is negative"),
        ({"lr": float("nan")}, "lr = nan is negative or not finite"),
        ({"lr": "0.1"}, "lr = '0.1' is not a number"),
        ({"lr": torch.ones(2)}, r"lr is a tensor of shape \(2,\)"),
        ({"p": 1.0}, r"exponent p = 1\.0 has no mirror map"),
        ({"p": float("inf")}, "exponent p = inf has no mirror map"),
        ({"momentum": 1.0}, r"momentum = 1\.0 averages nothing: choose 0 <= momentum < 1"),
        ({"momentum": "0.9"}, "momentum = '0.9' is not a number"),
        ({"scaling": "normalised"}, "scaling = 'normalised': choose one of relative, normalized"),
        ({"eps": -1.0}, r"eps = -1\.0 is negative"),
        ({"floor": -1.0}, r"floor = -1\.0 is negative"),
        ({"weight_decay": -1e-4}, r"weight_decay = -0\.0001 is negative"),
        ({"block": "head"}, "block = 'head': give None, 'tensor' or"),
        ({"block": (0, 1, (2, 2))}, r"does not fit the shape \(3, 5\)"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            LpMirrorDescent(
                [torch.nn.Parameter(torch.ones(3, 5))], **{"lr": 0.1, "p": 3.0, **settings}
            )
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="view_as_real"):
        LpMirrorDescent([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))], 0.1, 3.0)
    shard = torch.nn.Parameter(torch.ones(2))
    shard._fsdp_flattened = True
    with pytest.raises(UserError, match="a parameter is sharded, and scaling = 'relative' needs"):
        LpMirrorDescent([shard], 0.1, 3.0)
    LpMirrorDescent([shard], 0.1, 3.0, scaling="plain")
    words = torch.nn.Embedding(5, 2, sparse=True)
    for p in (2.0, 3.0):
        words(torch.tensor([1])).sum().backward()
        with pytest.raises(UserError, match="is sparse: mirror descent moves every entry"):
            LpMirrorDescent(words.parameters(), 0.1, p).step()
