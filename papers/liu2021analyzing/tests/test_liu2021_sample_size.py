"""Sample sizes: the printed numbers by hand, and what the proved ones depend on."""

import math

import jax
import jax.numpy as jnp
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds import liu2021_printed as formulas
from liu2021analyzing.library.bounds.liu2021_sample_size import (
    liu2021_attention,
    liu2021_baseline,
    liu2021_deep,
    liu2021_mask,
    liu2021_recurrent,
    liu2021_self_attention,
)
from liu2021analyzing.library.bounds.liu2021_union_bound import (
    Block,
    Conditions,
    liu2021_error,
    liu2021_sample_size,
)

ONE, SEVEN, KNOWN = (1.0,) * 3, (1.0,) * 7, Conditions(1.0)
PRINTED = {"constants": "printed"}


def test_the_claimed_advantage_is_p_squared_over_s0_squared():
    few = liu2021_attention(130, 10, 1e-9, ONE, s0=11, **PRINTED)
    all_ = liu2021_baseline(130, 10, 1e-9, ONE, **PRINTED)
    logs = math.log(130e9) / math.log(math.sqrt(11) * 1e9)
    assert all_ / few == pytest.approx((130 / 11) ** 2 * logs)


def test_the_corollary_is_the_theorem_but_for_its_logarithm():
    norms = (1.0, 1.0, 2.0)
    theorem = liu2021_attention(50, 3, 0.1, norms, s0=0, tau=1.0, **PRINTED)
    corollary = liu2021_baseline(50, 3, 0.1, norms, **PRINTED)
    assert corollary / theorem == pytest.approx(math.log(1000) / math.log(math.sqrt(50) * 20))


def test_theorem_2_hardly_sees_the_concentration():
    setting = ((130, 100, 9, 9, 1), 1e-9, SEVEN)
    sizes = [liu2021_self_attention(*setting, s0=s0, **PRINTED) for s0 in (11, 130)]
    roots = [s0 + 100 * math.sqrt(130) for s0 in (11, 130)]
    logs = [math.log(2e9 * k) for k in roots]
    assert roots[1] / roots[0] == pytest.approx(1.1034, abs=1e-4)
    ratio = (roots[1] / roots[0]) ** 2 * logs[1] / logs[0]
    assert sizes[1] / sizes[0] == pytest.approx(ratio)


def test_theorem_3_does_not_grow_as_its_accuracy_needs():
    # Squaring the accuracy only doubles the logarithm.
    fine, coarse = (liu2021_deep(gamma, 1.0, 5, **PRINTED) for gamma in (1e-4, 1e-2))
    assert fine == pytest.approx(2 * coarse)


def test_lemma_1_and_theorem_6_scale_as_printed():
    masks = [liu2021_mask(30, 2, s0, 1e-9, ONE, **PRINTED) for s0 in (4, 8)]
    assert masks[1] / masks[0] == pytest.approx(4 * math.log(8e9) / math.log(4e9))
    parts = [liu2021_recurrent((3, 4, d_a, 6), 0.1, ONE, ONE[:2], **PRINTED) for d_a in (5, 32)]
    assert parts[1] / parts[0] == pytest.approx((12 + 4 + 32 + 6) / (12 + 4 + 5 + 6))


def test_every_printed_size_by_hand_where_its_logarithm_is_a_whole_number():
    e, e2 = math.e, math.e**2
    # Spread 2 + 9^(1/2) / 3 = 3 and 20 parameters; 3 eta / gamma = 24 C_2 = e^2. The size is
    # spread^2 (e^2)^2 2 x 20 = 360 e^4, times c.
    found = liu2021_attention(9, 2, 0.5, (5.0, 2.0, e2 / 24), s0=4, tau=1 / 3, c=7.0, **PRINTED)
    assert found == pytest.approx(2520 * e**4)
    # p eta / gamma = 72 C_2 = e^3: 3 e^6 x 20, times c.
    found = liu2021_baseline(9, 2, 0.5, (5.0, 2.0, e**3 / 72), c=7.0, **PRINTED)
    assert found == pytest.approx(420 * e**6)
    # k = 9 + 3 x 5 = 24, k eta_a / gamma = 2112 C_2 = e^2 / 12, eta_b = 12, 54 parameters:
    # e^4 / 144 x 54 x 2.
    norms = (13.0, 2.0, e2 / (2112 * 12), 5.0, 7.0, 17.0, 11.0)
    found = liu2021_self_attention((9, 5, 2, 3, 19), 0.5, norms, s0=4, tau=1 / 3, **PRINTED)
    assert found == pytest.approx(0.75 * e**4)
    # eta / gamma = 12 C_2 = e^2 / 77, C_8 C_9 = 77, 10 + 2 + 3 + 4 = 19 parameters:
    # (6 e^2 / 77)^2 x 2 x 19.
    norms = (2.0, 3.0, e2 / (12 * 77))
    found = liu2021_recurrent((5, 2, 3, 4), 0.5, norms, (7.0, 11.0), **PRINTED)
    assert found == pytest.approx(1368 / 5929 * e**4)
    # s0 eta / gamma = 48 C_2 = e^2, 18 + 9 + 2 = 29 parameters: (6 e^2)^2 x 2 x 29.
    found = liu2021_mask(9, 2, 4, 0.5, (2.0, 3.0, e2 / 48), **PRINTED)
    assert found == pytest.approx(2088 * e**4)
    # c_K / gamma = e^3: 3 x 6 parameters, times c.
    assert liu2021_deep(0.5, e**3 / 2, 6, c=2.0, **PRINTED) == pytest.approx(36)


def test_what_is_proved_does_not_depend_on_concentration():
    everywhere = liu2021_attention(130, 5, 0.01, ONE, KNOWN)
    assert liu2021_attention(130, 5, 0.01, ONE, KNOWN, s0=1, tau=0.01) == everywhere
    assert liu2021_baseline(130, 5, 0.01, ONE, KNOWN) == everywhere
    setting = ((5, 4, 3, 2, 6), 0.1, SEVEN, KNOWN)
    assert liu2021_self_attention(*setting, s0=1) == liu2021_self_attention(*setting)


def test_corrected_and_sharp_are_one_here():
    calls = [
        lambda name: liu2021_attention(9, 2, 0.5, ONE, KNOWN, constants=name),
        lambda name: liu2021_mask(9, 2, 4, 0.5, ONE, KNOWN, constants=name),
        lambda name: liu2021_deep(0.5, 3.0, 6, constants=name),
    ]
    for call in calls:
        assert call("corrected") == call("sharp") > call("printed")


def test_rate_and_growth_of_the_sample_size():
    sizes = [liu2021_attention(8, 4, g, ONE, Conditions(1.0)) for g in (1e-2, 1e-3)]
    assert 100 < sizes[1] / sizes[0] < 150
    # Lambda and gamma^2 come together.
    same = liu2021_attention(8, 4, 1e-3, ONE, Conditions(1.0))
    assert liu2021_attention(8, 4, 1e-2, ONE, Conditions(0.01)) == pytest.approx(same)
    loud = liu2021_attention(8, 4, 1e-2, ONE, Conditions(1.0, noise=20.0))
    assert 100 < loud / sizes[0] < 140


def test_attention_gains_by_norm_or_by_known_support_and_not_by_concentration():
    known = Conditions(1.0)
    one, none, even = (
        liu2021_attention(130, 5, 0.01, ONE, known, weight_norm=norm)
        for norm in (1.0, math.sqrt(130), 1 / math.sqrt(130))
    )
    assert even < one < none
    support = liu2021_attention(11, 5, 0.01, ONE, known)
    # Parameters, and a few terms that both share.
    assert 0.95 * 131 / 12 < one / support < 131 / 12


def test_all_parameters_of_learned_attention_count():
    known, norms = Conditions(1.0), SEVEN
    small = liu2021_self_attention((5, 4, 3, 2, 6), 0.1, norms, known)
    large = liu2021_self_attention((5, 4, 3, 2, 60), 0.1, norms, known)
    counts = [5 * 2 * 3 + 3 + 2 * 4 + 2 * 4 * d_q for d_q in (6, 60)]
    # Longer logarithms of the stretched blocks aside.
    assert large / small == pytest.approx(counts[1] / counts[0], rel=0.05)
    context = liu2021_recurrent((4, 3, 2, 2), 0.1, ONE, (1.0, 1.0), known)
    assert context < small


def test_learned_masks_pay_for_their_support_twice():
    sizes = [liu2021_mask(40, 3, s0, 0.01, ONE, Conditions(1.0)) for s0 in (2, 4)]
    assert 4 < sizes[1] / sizes[0] < 4.5


def test_theorem_3_grows_with_the_accuracy():
    # log(1 / gamma) / gamma^2: 2 x 100.
    ratio = liu2021_deep(1e-2, 1.0, 5) / liu2021_deep(0.1, 1.0, 5)
    assert ratio == pytest.approx(200)


def test_queries_and_keys_stretch_by_the_root_of_their_dimension():
    sizes = [
        liu2021_self_attention((2, 3, 1, 1, d_q), 0.1, (1.0, 1.0, 1.0, C_5, 100.0, 1.0, 1.0), known)
        for d_q, C_5, known in ((1, 100.0, Conditions(1.0)), (1, 50.0, Conditions(1.0)))
    ]
    # Half of a stretch above one: log 2 less for each of the 2 t d_q parameters.
    M, level = 2 * 6, 0.01
    assert sizes[0] - sizes[1] == pytest.approx(128 * M**2 / level * 6 * math.log(2))
    # Four times the dimension: the same halved stretch on four times the parameters.
    wide = liu2021_self_attention(
        (2, 3, 1, 1, 4), 0.1, (1.0, 1.0, 1.0, 100.0, 100.0, 1.0, 1.0), Conditions(1.0)
    )
    rho = math.sqrt(level) / (52 * M)
    each = math.log(3 * 100.0 * 50.0 * 3 / rho)
    assert wide - sizes[1] == pytest.approx(128 * M**2 / level * 18 * each)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: liu2021_attention(5, 1, 1.0, ONE, s0=6, **PRINTED), "s0 = 6 of p = 5"),
        (lambda: liu2021_mask(5, 1, 6, 1.0, ONE, **PRINTED), "s0 = 6 of p = 5"),
        (lambda: liu2021_mask(4, 1, 5, 0.1, ONE, KNOWN), "s0 = 5 of p = 4"),
        (lambda: liu2021_attention(5, 1, 1.0, ONE), "give conditions=Conditions"),
    ],
)
def test_bad_settings_are_refused(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_every_proved_size_is_the_union_bound_of_its_features_and_blocks():
    known, gamma, c = Conditions(0.3, 0.01, 0.2, 0.04), 0.4, 7.0
    C_x, C_1, C_2 = norms = (1.3, 1.7, 0.6)

    def size(features, d, *blocks):
        return liu2021_sample_size(features, C_2, d, [Block(*b) for b in blocks], gamma, known)

    found = liu2021_attention(5, 3, gamma, norms, known, weight_norm=0.7, c=c)
    assert found == pytest.approx(size(1.7 * 1.3 * 0.7, 3, (15,)), rel=1e-12)
    found = liu2021_baseline(5, 3, gamma, norms, known, c=c)
    assert found == pytest.approx(size(1.7 * 1.3, 3, (15,)), rel=1e-12)
    C_5, C_6, C_7, C_8 = 1.9, 2.3, 0.8, 3.1
    p, t, d, d_v, d_q = sizes = (5, 4, 3, 2, 7)
    seven = (C_x, C_1, C_2, C_5, C_6, C_7, C_8)
    found = liu2021_self_attention(sizes, gamma, seven, known, c=c)
    moved = 1.9 * 2.3 * 4 * 1.3**2 / 7**0.5
    blocks = (p * d_v * d, 1.0), (d_v * t, 1.0), (2 * t * d_q, moved), (0, 1.0)
    assert found == pytest.approx(size(1.7 * 0.8 * 1.3 * 20**0.5, d, *blocks), rel=1e-12)
    found = liu2021_recurrent((4, 3, 5, 6), gamma, norms, (2.7, 3.3), known, c=c)
    expected = size(1.7 * 1.3 * 2, 3, (12, 1.0), (5, 2.7), (6, 3.3))
    assert found == pytest.approx(expected, rel=1e-12)
    found = liu2021_mask(7, 3, 5, gamma, norms, known, c=c)
    assert found == pytest.approx(size(1.7 * 1.3 * 5**0.5, 3, (21,), (7,)), rel=1e-12)
    # c c_K / (m gamma)^2 log(c_K / (m gamma)) P with m gamma = 0.6
    expected = 7 * 11 / 0.36 * 13 * math.log(11 / 0.6)
    assert liu2021_deep(0.4, 11.0, 13, 1.5, c) == pytest.approx(expected, rel=1e-12)


def test_every_printed_size_with_all_numbers_different():
    gamma, c = 0.4, 7.0
    C_x, C_1, C_2 = norms = (1.3, 1.7, 0.6)
    spread = math.sqrt(3) + 0.2 * math.sqrt(5)
    eta = 1.7 * 1.7 * 0.6 / gamma
    printed = {"c": c, "constants": "printed"}
    found = liu2021_attention(5, 3, gamma, norms, s0=3, tau=0.2, **printed)
    assert found == pytest.approx(7 * spread**4 * eta**2 * math.log(spread * eta) * 18, rel=1e-12)
    found = liu2021_baseline(5, 3, gamma, norms, **printed)
    assert found == pytest.approx(7 * 25 * eta**2 * math.log(5 * eta) * 18, rel=1e-12)
    k, C_5, C_6, C_8 = spread**2 + 4 * math.sqrt(5), 1.9, 2.3, 3.1
    seven = (C_x, C_1, C_2, C_5, C_6, 0.8, C_8)
    found = liu2021_self_attention((5, 4, 3, 2, 7), gamma, seven, s0=3, tau=0.2, **printed)
    expected = 7 * (k * eta * C_8) ** 2 * 30 * math.log(k * eta * C_8 * (C_5 + C_6))
    assert found == pytest.approx(expected, rel=1e-12)
    everywhere = liu2021_self_attention((5, 4, 3, 2, 7), gamma, seven, **printed)
    s0 = liu2021_self_attention((5, 4, 3, 2, 7), gamma, seven, s0=5, tau=0.0, **printed)
    assert everywhere == s0
    eta = 1.7 * 0.6 * 1.3 / gamma
    found = liu2021_recurrent((4, 3, 5, 6), gamma, norms, (2.7, 3.3), **printed)
    expected = 7 * (1.7 * 1.3 * eta) ** 2 * math.log(eta * 2.7 * 3.3) * (12 + 3 + 5 + 6)
    assert found == pytest.approx(expected, rel=1e-12)
    found = liu2021_mask(7, 3, 5, gamma, norms, **printed)
    expected = 7 * (5 * 1.7 * 1.3 * eta) ** 2 * math.log(5 * eta) * (21 + 7 + 3)
    assert found == pytest.approx(expected, rel=1e-12)


NUMBERS = (5, 3, 0.4, 1.3, 3, 0.2)
FORMULAS = {
    "Theorem 1": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_attention(p, d, gamma, C, 3, s0, tau),
        liu2021_attention(5, 3, 0.4, (2.0, 1.3, 3.0), s0=3, tau=0.2, **PRINTED),
    ),
    "Corollary 1": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_baseline(p, d, gamma, C, 3),
        liu2021_baseline(5, 3, 0.4, (2.0, 1.3, 3.0), **PRINTED),
    ),
    "Theorem 2": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_self_attention(
            (p, d, 7, 2), gamma, (2, 3, C, 5, 7), s0, tau
        ),
        liu2021_self_attention(
            (5, 3, 7, 2, 11), 0.4, (1.0, 2.0, 3.0, 1.3, 5.0, 6.0, 7.0), s0=3, tau=0.2, **PRINTED
        ),
    ),
    "Theorem 3": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_deep(gamma, C, p),
        liu2021_deep(0.4, 1.3, 5, **PRINTED),
    ),
    "Theorem 6": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_recurrent(
            (p, d, 7, 6), gamma, (C, 2, 3), (2.7, s0)
        ),
        liu2021_recurrent((5, 3, 7, 6), 0.4, (1.3, 2.0, 3.0), (2.7, 3.0), **PRINTED),
    ),
    "Lemma 1": (
        lambda p, d, gamma, C, s0, tau: formulas.printed_mask(p, d, s0, gamma, (C, 2, 3)),
        liu2021_mask(5, 3, 3, 0.4, (1.3, 2.0, 3.0), **PRINTED),
    ),
    "Lemma 1.1": (
        lambda p, d, gamma, C, s0, tau: formulas.gradient_error(gamma, C, tau, s0),
        liu2021_error(0.4, 1.3, Conditions(smallest=0.2, residual=3.0)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_size_is_that_of_its_formula_also_where_jax_traces_it(name):
    formula, size = FORMULAS[name]
    assert formula(*NUMBERS) == size
    with jax.enable_x64(True):
        found = jax.jit(formula)(*(jnp.asarray(float(number)) for number in NUMBERS))
    assert float(found) == pytest.approx(size, rel=1e-13)
