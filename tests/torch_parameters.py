"""Parameters for the tests of the PyTorch optimiser, and steps with drawn gradients."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.torch import LpMirrorDescent  # noqa: E402

EXPONENTS = (1.1, 1.5, 2.0, 3.0, 10.0)
SHAPES = ((3, 5), (7,), ())
plain_descent = functools.partial(LpMirrorDescent, scaling="plain")


def parameters(dtype=torch.float64, shapes=SHAPES, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [
        torch.nn.Parameter(torch.randn(s, generator=draw, dtype=torch.float64).to(dtype))
        for s in shapes
    ]


def train(params, optimizer, steps=5, seed=1, compiled=None):
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for w in params:
            w.grad = torch.randn(w.shape, generator=draw, dtype=torch.float64).to(w.dtype)
        (compiled or optimizer.step)()
    return [w.detach().clone() for w in params]


def equal(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))
