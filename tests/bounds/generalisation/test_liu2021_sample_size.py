"""Printed sample sizes: the numbers of the paper's file, and what they depend on."""

import math

import pytest

from attlas.bounds.generalisation.liu2021_sample_size import (
    liu2021_attention,
    liu2021_baseline,
    liu2021_deep,
    liu2021_mask,
    liu2021_recurrent,
    liu2021_self_attention,
)
from attlas.core.errors import UserError

ONE = (1.0, 1.0, 1.0, 1.0, 1.0)


def test_the_claimed_advantage_is_p_squared_over_s0_squared():
    few = liu2021_attention(130, 10, 11, 0.0, 1e-9, 1.0, 1.0)
    all_ = liu2021_baseline(130, 10, 1e-9, 1.0, 1.0)
    logs = math.log(130e9) / math.log(math.sqrt(11) * 1e9)
    assert all_ / few == pytest.approx((130 / 11) ** 2 * logs)


def test_the_corollary_is_the_theorem_but_for_its_logarithm():
    theorem = liu2021_attention(50, 3, 0, 1.0, 0.1, 1.0, 2.0)
    corollary = liu2021_baseline(50, 3, 0.1, 1.0, 2.0)
    assert corollary / theorem == pytest.approx(math.log(1000) / math.log(math.sqrt(50) * 20))


def test_theorem_2_hardly_sees_the_concentration():
    sizes = [liu2021_self_attention(130, 100, 9, 9, s0, 0.0, 1e-9, ONE) for s0 in (11, 130)]
    roots = [s0 + 100 * math.sqrt(130) for s0 in (11, 130)]
    logs = [math.log(2e9 * k) for k in roots]
    assert roots[1] / roots[0] == pytest.approx(1.1034, abs=1e-4)
    ratio = (roots[1] / roots[0]) ** 2 * logs[1] / logs[0]
    assert sizes[1] / sizes[0] == pytest.approx(ratio)


def test_theorem_3_does_not_grow_as_its_accuracy_needs():
    # Squaring the accuracy only doubles the logarithm.
    assert liu2021_deep(1e-4, 1.0, 5) == pytest.approx(2 * liu2021_deep(1e-2, 1.0, 5))


def test_lemma_1_and_theorem_6_scale_as_printed():
    masks = [liu2021_mask(30, 2, s0, 1e-9, (1.0, 1.0, 1.0)) for s0 in (4, 8)]
    assert masks[1] / masks[0] == pytest.approx(4 * math.log(8e9) / math.log(4e9))
    parts = [liu2021_recurrent(3, 4, d_a, 6, 0.1, ONE) for d_a in (5, 32)]
    assert parts[1] / parts[0] == pytest.approx((12 + 4 + 32 + 6) / (12 + 4 + 5 + 6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: liu2021_attention(5, 1, 6, 0.0, 1.0, 1.0, 1.0), "s0 = 6 of p = 5"),
        (lambda: liu2021_mask(5, 1, 6, 1.0, (1.0, 1.0, 1.0)), "s0 = 6 of p = 5"),
    ],
)
def test_more_weights_than_there_are_is_refused(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_every_printed_size_is_the_formula_with_unlike_numbers():
    # p = 9, t = 5, d = 2, s0 = 4, tau = 1/3: spread 2 + 1 = 3.
    found = liu2021_attention(9, 2, 4, 1 / 3, 0.5, 2.0, 3.0, c=7.0)
    assert found == pytest.approx(7 * 3**4 * (12 / 0.5) ** 2 * math.log(3 * 12 / 0.5) * 20)
    found = liu2021_baseline(9, 2, 0.5, 2.0, 3.0, c=7.0)
    assert found == pytest.approx(7 * 81 * (12 / 0.5) ** 2 * math.log(9 * 12 / 0.5) * 20)
    # k = 9 + 15 = 24, eta_a = 4 * 3 * 11 = 132, eta_b = 5 + 7 = 12.
    found = liu2021_self_attention(9, 5, 2, 3, 4, 1 / 3, 0.5, (2.0, 3.0, 5.0, 7.0, 11.0))
    expected = (24 * 132 / 0.5) ** 2 * 9 * 3 * 2 * math.log(24 * 132 * 12 / 0.5)
    assert found == pytest.approx(expected)
    # eta = C_1 C_2 C_x = 3 * 5 * 2 = 30.
    found = liu2021_recurrent(5, 2, 3, 4, 0.5, (2.0, 3.0, 5.0, 7.0, 11.0))
    assert found == pytest.approx((6 * 30 / 0.5) ** 2 * math.log(30 * 77 / 0.5) * 19)
    found = liu2021_mask(9, 2, 4, 0.5, (2.0, 3.0, 5.0))
    assert found == pytest.approx((4 * 6 * 30 / 0.5) ** 2 * math.log(4 * 30 / 0.5) * 29)
    assert liu2021_deep(0.5, 3.0, 6, c=2.0) == pytest.approx(12 * math.log(6))
