"""One step of mirror descent on tensors."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.torch.blocks import CHUNK  # noqa: E402
from attlas.torch.steps import pushed, run_steps, works_of  # noqa: E402

GROUP = {
    "p": 3.0, "lr": 0.1, "weight_decay": 0.5, "maximize": False, "scaling": "plain",
    "block": None, "eps": 0.0, "floor": 0.0,
}  # fmt: skip


def problem(size):
    """Weights, gradient and mirror variable |w|^(p-1) sign w of p = 3."""
    random = np.random.default_rng(0)
    w, gradient = random.normal(size=size), random.normal(size=size)
    param = torch.tensor(w)
    param.grad = torch.tensor(gradient)
    return param, torch.tensor(np.sign(w) * w**2), w, gradient


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("size", [7, CHUNK + 3])
def test_the_mirror_variable_moves_and_the_weights_are_its_image(size, foreach):
    param, dual, w, gradient = problem(size)
    run_steps(works_of(GROUP, [param], [dual], [param.grad], compiling=False), foreach)
    u = (1 - 0.1 * 0.5) * np.sign(w) * w**2 - 0.1 * gradient
    np.testing.assert_allclose(dual.numpy(), u, rtol=1e-14, atol=1e-15)
    expected = np.sign(dual.numpy()) * np.sqrt(np.abs(dual.numpy()))
    np.testing.assert_allclose(param.numpy(), expected, rtol=1e-14)


def test_maximising_is_the_other_way_and_nothing_moves_without_a_gradient():
    param, dual, _, gradient = problem(5)
    before = dual.clone()
    (work,) = works_of(
        {**GROUP, "maximize": True, "weight_decay": 0.0}, [param], [dual], [param.grad], False
    )
    run_steps([work], False)
    np.testing.assert_allclose((dual - before).numpy(), 0.1 * gradient, rtol=1e-12)
    assert works_of(GROUP, [], [], [], compiling=False) == []


def test_only_entries_with_a_gradient_are_pushed():
    param, dual, *_ = problem(3)
    param.grad[1] = 0.0
    (work,) = works_of(GROUP, [param], [dual], [param.grad], compiling=False)
    assert pushed(work).tolist() == [True, False, True]
