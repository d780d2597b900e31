import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.transformer_weights import check_weights
from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
    deora2023_training_loss,
)
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


def test_widths_solve_their_equations():
    """log m = log(n^2 log(n / delta)^2 / lambda^2) + 18 B for one output and sigma = 1."""
    n, smallest, delta = 17, 0.03, 0.2
    fixed = 2 * math.log(n * math.log(n / delta) / smallest)
    printed = fixed + 18 * 10 * math.sqrt(math.log(n / delta))
    corrected = 1.0
    for _ in range(100):
        corrected = fixed + 18 * math.sqrt(2 * (math.log(n / (2 * delta)) + corrected))
    found = head_widths(n, smallest, delta)
    assert float(found["printed"]) == pytest.approx(printed / math.log(10), rel=1e-12)
    assert float(found["corrected"]) == pytest.approx(corrected / math.log(10), rel=1e-9)


def test_samples_are_those_of_the_stated_norms():
    """T = 7 tokens of d = 5, two units, C_1 = sqrt(2) ||u||, C_2 = sqrt(2), C_7 = sqrt(d)."""
    head = HEAD._replace(T=7, d=5, largest=1.3, decoder=2.6, nuclear=3.4)
    T, d, s0, tau, least, gamma = 7, 5, 3, 0.2, 0.04, 0.6
    found = head_sample_sizes(head, s0, tau, least, gamma)
    spread = math.sqrt(s0) + tau * math.sqrt(T)
    eta = 2 * 2.6**2 * math.sqrt(2)
    fixed = (eta / gamma) ** 2 * (2 * T + 2)
    expected = {
        "Theorem 1, printed": spread**4 * fixed * math.log(spread * eta / gamma),
        "Corollary 1, printed": T**2 * fixed * math.log(T * eta / gamma),
    }
    stretch = math.sqrt(d) * 3.4  # C_5 C_6
    k = spread**2 + math.sqrt(T) * d
    logarithm = math.log(k * eta * 2 * math.sqrt(stretch) / gamma)
    expected["Theorem 2, printed"] = (k * eta / gamma) ** 2 * T * d * 2 * logarithm
    # B = C_1 C_7 C_x sqrt(T d); blocks W_1, W_V, and W_Q and W_K with their stretch.
    features = math.sqrt(2) * 2.6 * math.sqrt(d) * 1.3 * math.sqrt(T * d)
    M, level = 2 * math.sqrt(2) * features**2, least * gamma**2
    rho = math.sqrt(level) / (4 * 13 * M)
    each = math.log(3 * stretch * d * 1.3**2 / math.sqrt(d) / rho)
    entropy = (2 + T * d * 2 + d * d) * math.log(3 / rho) + 2 * d * d * each + math.log(80)
    expected["Theorem 2, corrected"] = 128 * M**2 / level * entropy
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize(("step_size", "slope"), [(0.3, 0.3 * (1.5**3 * 0.9) ** 2), (0.9, 4.0)])
def test_theorems_have_one_token_one_head_and_the_stated_slope(step_size, slope):
    """beta_1 = R max(1, R^2 ||u||) for a decoder that reads one token."""
    head = HEAD._replace(step_size=step_size, decoder=0.9, distance=0.7, norm=1.2)
    found = head_descent_bounds(head)
    setting = Setting(T=1, d=8, R=1.5, distance=0.7, largest_head=1.2)
    for version, s in (("printed", 1.0), ("sharp", slope)):
        path = (0.1, 0.7, step_size, 1000)
        rho = float(deora2023_rho(setting, 1, version))
        limits = [0.49 / 100, 0.49 / 0.69, 1 / rho] + [1.0] * (version == "printed")
        expected = {
            "heads": np.log10(float(deora2023_head_condition(setting, version))),
            "stability heads": np.log10(float(deora2023_stability_heads(setting, version))),
            "step": min(limits),
            "training": float(deora2023_training_loss(*path, version)),
            "gap": float(deora2023_generalisation_gap(32, *path, s, version)),
        }
        for name, value in expected.items():
            assert float(found[f"{name}, {version}"]) == pytest.approx(value, rel=1e-12), name
