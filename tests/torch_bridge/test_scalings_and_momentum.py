"""Momentum, and the norms that relative and normalised steps are scaled by."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from torch_parameters import EXPONENTS, equal, parameters, plain_descent, train  # noqa: E402

from attlas.torch import LpMirrorDescent  # noqa: E402


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_at_two_momentum_is_that_of_sgd_bit_for_bit(dtype, foreach):
    same = {"momentum": 0.9, "maximize": True, "foreach": foreach}
    ours, theirs = parameters(dtype), parameters(dtype)
    found = train(ours, plain_descent(ours, 0.05, 2.0, **same))
    assert equal(found, train(theirs, torch.optim.SGD(theirs, 0.05, **same)))
    without = parameters(dtype)
    assert not equal(found, train(without, plain_descent(without, 0.05, 2.0, maximize=True)))


def test_one_cycle_turns_rate_and_momentum():
    params = parameters()
    optimizer = LpMirrorDescent(params, p=3.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    seen = []
    for _ in range(10):
        seen.append((optimizer.param_groups[0]["momentum"], optimizer.param_groups[0]["lr"]))
        train(params, optimizer, steps=1)
        scheduler.step() if len(seen) < 10 else None
    momenta, rates = zip(*seen, strict=True)
    assert (max(momenta), min(momenta)) == (0.95, 0.85)
    assert max(rates) == 0.1
    assert momenta.index(0.85) == rates.index(0.1)
    assert all(torch.isfinite(w).all() for w in params)


def test_a_state_from_before_momentum_goes_on():
    params = parameters(torch.float32)
    optimizer = plain_descent(params, 0.05, 3.0)
    train(params, optimizer)
    saved = copy.deepcopy(optimizer.state_dict())
    del saved["param_groups"][0]["scaling"], saved["param_groups"][0]["momentum"]
    again = [torch.nn.Parameter(w.detach().clone()) for w in params]
    other = LpMirrorDescent(again, 1.0, 3.0, momentum=0.5)
    other.load_state_dict(saved)
    assert equal(train(again, other, seed=7), train(params, optimizer, seed=7))


def test_normalised_steps_divide_by_the_norm_of_the_block():
    def step(groups, **settings):
        optimizer = plain_descent(groups, 0.1, 3.0, scaling="normalized", **settings)
        for group in optimizer.param_groups:
            for w in group["params"]:
                w.grad = torch.cos(w.detach())
        optimizer.step()

    fused = torch.nn.Parameter(torch.linspace(-1, 1, 24, dtype=torch.float64).view(2, 12))
    apart = [torch.nn.Parameter(x.clone()) for x in fused.detach().split(4, 1)]
    step([fused], block=(1, 1, (4, 4, 4)))
    step(apart, block="tensor")
    joined = torch.cat([w.detach() for w in apart], 1)
    # Of one mathematical value; strided and contiguous sums of 8 powers may round differently.
    assert torch.allclose(fused.detach(), joined, rtol=8 * 2**-52, atol=0)
    whole = torch.nn.Parameter(torch.linspace(-1, 1, 24, dtype=torch.float64).view(2, 12))
    step([whole])
    assert not torch.allclose(whole, fused, rtol=1e-3)


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
@pytest.mark.parametrize("block", [None, "tensor", (0, 1, (2, 3))])
@pytest.mark.parametrize("foreach", [False, True])
def test_an_entry_that_is_not_finite_spoils_no_other(spoilt, block, foreach):
    def step(entry):
        w = torch.nn.Parameter(torch.linspace(-1, 1, 5, dtype=torch.float64))
        optimizer = plain_descent(
            [w], 0.1, 3.0, scaling="normalized", block=block, foreach=foreach, weight_decay=0.1
        )
        w.grad = torch.cos(w.detach())
        w.grad[1] = entry
        optimizer.step()
        return w.detach()

    found, without = step(spoilt), step(0.0)
    assert not found[1].isfinite()
    others = [0, 2, 3, 4]
    assert torch.equal(found[others], without[others])


@pytest.mark.parametrize("scaling", ["relative", "normalized", "plain"])
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_momentum_and_its_scalings_are_their_formulas(p, scaling):
    """In NumPy, with the norm of powers as it is written."""
    (w,) = parameters(shapes=((6,),))
    u = np.sign(w.detach().numpy()) * np.abs(w.detach().numpy()) ** (p - 1)
    m, q = np.zeros(6), p / (p - 1)
    optimizer = LpMirrorDescent([w], 0.05, p, momentum=0.8, scaling=scaling, weight_decay=0.1)
    draw = np.random.default_rng(2)
    for _ in range(4):
        g = draw.normal(size=6)
        w.grad = torch.tensor(g)
        optimizer.step()
        m = 0.8 * m + g
        sizes = {"relative": (p - 1) * np.linalg.norm(u, q), "normalized": 1.0}
        s = sizes[scaling] / np.linalg.norm(m, q) if scaling in sizes else 1.0
        u = (1 - 0.05 * 0.1) * u - 0.05 * s * m
    expected = np.sign(u) * np.abs(u) ** (1 / (p - 1))
    # Four steps of sums of six powers, whose errors the inverse map multiplies by 1 / (p - 1) <= 2.
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=2 * 4 * 6 * 8 * 2**-52)


@pytest.mark.parametrize("p", EXPONENTS)
def test_relative_steps_have_no_units_and_leave_zero(p):
    moved = []
    for unit in (1.0, 2.0**20):
        w = torch.nn.Parameter(torch.linspace(-1, 1, 5, dtype=torch.float64))
        optimizer = LpMirrorDescent([w], 0.01, p)
        w.grad = unit * torch.cos(w.detach())
        optimizer.step()
        moved.append(w.detach())
    # A power of two leaves every ratio as it is.
    assert torch.equal(*moved)
    still = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimizer = LpMirrorDescent([still], 0.01, p)
    still.grad = torch.ones_like(still)
    optimizer.step()
    expected = -0.001 * (0.01 * (p - 1)) ** (1 / (p - 1))
    np.testing.assert_allclose(still.detach().numpy(), expected, rtol=64 * 2**-52 / (p - 1))


def test_momentum_that_is_switched_off_is_forgotten():
    (w,) = parameters(torch.float32, ((9,),))
    optimizer = plain_descent([w], 0.05, 2.0, momentum=0.9)
    train([w], optimizer)
    assert list(optimizer.state[w]) == ["momentum"]
    optimizer.param_groups[0]["momentum"] = 0.0
    fresh = torch.nn.Parameter(w.detach().clone())
    expected = train([fresh], torch.optim.SGD([fresh], 0.05), seed=3)
    assert equal(train([w], optimizer, seed=3), expected)
    assert not optimizer.state


def test_a_step_below_its_floor_moves_nothing():
    (w,) = parameters(shapes=((4,),))
    before = w.detach().clone()
    optimizer = plain_descent([w], 0.1, 3.0, scaling="normalized", floor=1e-3, weight_decay=0.5)
    w.grad = torch.full((4,), 1e-6, dtype=torch.float64)
    optimizer.step()
    assert torch.equal(w, before)
