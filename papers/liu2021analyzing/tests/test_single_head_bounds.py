import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.transformer_weights import check_weights
from attlas.bounds.optimisation.deora2023_training import Setting, deora2023_rho
from liu2021analyzing.library.audit.single_head_bounds import (
    TrainedHead,
    head_descent_bounds,
    head_sample_sizes,
    head_transformer,
    head_widths,
)
from liu2021analyzing.library.bounds.liu2021_sample_size import liu2021_baseline

HEAD = TrainedHead(32, 8, 8, 1.5, 1.2, 0.004, 1000, 3.0, 4.0, 0.1, 0.69, 2.5, 3.0)


def test_arrays_of_heads_give_each_its_own_bounds():
    alone = head_descent_bounds(HEAD)
    many = jax.vmap(lambda D, x: head_descent_bounds(HEAD._replace(distance=D, norm=x)))(
        jnp.array([3.0, 1.0]), jnp.array([4.0, 2.0])
    )
    for name, value in alone.items():
        assert float(many[name][0]) == pytest.approx(float(value), rel=1e-12)


def test_the_step_allowed_is_the_least_limit():
    found = head_descent_bounds(HEAD)
    rho = deora2023_rho(Setting(1, 8, 1.5, 3.0, 4.0), 1, "printed")
    limits = (3.0**2 / (1000 * 0.1), 3.0**2 / 0.69, 1 / rho)
    assert float(found["step, printed"]) == pytest.approx(min(1.0, *map(float, limits)))
    assert float(found["step, sharp"]) > float(found["step, printed"])


def test_sharp_constants_ask_for_fewer_heads():
    found = head_descent_bounds(HEAD)
    for name in ("heads", "stability heads"):
        assert 0 < float(found[f"{name}, sharp"]) < float(found[f"{name}, printed"])


def test_widths_fall_with_the_eigenvalue():
    small, large = head_widths(32, 1e-4), head_widths(32, 1e-2)
    for name in small:
        # lambda enters squared; more where B grows with the width
        assert float(small[name]) - float(large[name]) >= 4 - 1e-9


def test_the_head_is_a_network_with_two_units():
    found = head_sample_sizes(HEAD, 3, 0.1, 0.05)
    same = liu2021_baseline(8, 2, 0.5, (1.2, np.sqrt(2) * 2.5, np.sqrt(2)), constants="printed")
    assert found["Corollary 1, printed"] == pytest.approx(same)
    assert found["Theorem 2, corrected"] > found["Theorem 2, printed"]


def test_the_head_as_a_layer_gives_the_same_output():
    rng = np.random.default_rng(0)
    u, W, X = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
    weights = head_transformer(u, W)
    assert check_weights(weights) == 3
    ((head,),) = weights.layers
    logits = X[-1] @ head.query_key @ X.T
    a = np.exp(logits - logits.max())
    mixed = (a / a.sum()) @ X @ head.value @ head.output @ weights.readout
    direct = np.exp(X @ W.T @ X[-1])
    assert mixed == pytest.approx(direct @ (X @ u) / direct.sum(), rel=1e-12)
