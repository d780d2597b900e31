"""A generator whose draws can be moved: the same stream, and moved numbers at their places."""

from copy import deepcopy
from functools import partial

import numpy as np

from attlas.claims.perturbed_draws import PerturbedGenerator, apart, within
from attlas.claims.sampling import shared


def drawn(rng):
    return [
        rng.normal(1.0, 2.0, size=(3, 2)), rng.uniform(-1, 3, size=4), rng.standard_normal(),
        rng.random(2), rng.integers(9, size=5), rng.choice(7, size=3), rng.dirichlet(np.ones(3)),
        rng.integers(2, 5, size=4, endpoint=True), rng.integers(np.array([0, 3]), np.array([2, 9])),
        rng.choice([2.0, 5.0], size=(2, 3), p=[0.2, 0.8]), rng.choice(9, 4, replace=False),
        rng.permutation(5), rng.permutation(np.arange(8.0).reshape(4, 2)), rng.integers(2**40),
        rng.permuted(np.arange(12).reshape(3, 4), axis=1), rng.dirichlet([0.2, 3.0], size=4),
        rng.permuted(np.arange(6)), rng.permutation(np.ones((2, 3)), axis=1),
        rng.gamma(2.0, 3.0, size=3), rng.gamma(0.5), rng.beta(0.5, 2.0, size=3),
        rng.uniform(np.zeros(2), 5.0), rng.normal(np.zeros(2)),
    ]  # fmt: skip


def test_what_is_not_moved_is_what_numpy_draws():
    found, expected = (drawn(rng) for rng in (PerturbedGenerator(np.random.default_rng(4)),
                                              np.random.default_rng(4)))  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)


def test_moved_numbers_stand_at_their_place_and_leave_the_others():
    first = PerturbedGenerator(np.random.default_rng(4))
    x, u = first.normal(1.0, 2.0, size=3), first.uniform(-1, 3, size=2)
    place, other = first.numbers
    assert (first.law(place), first.law(other)) == ("normal", "uniform")
    moved = {place: first.numbers[place] + 1.5, other: np.array([0.0, 1.0])}
    again = PerturbedGenerator(np.random.default_rng(4), moved)
    np.testing.assert_allclose(again.normal(1.0, 2.0, size=3), x + 3.0)
    assert again.uniform(-1, 3, size=2).tolist() == [-1.0, 3.0]
    assert again.integers(100) == first.integers(100)
    assert u.shape == (2,)


def _again(draw, change):
    """What a sampler draws, and what it draws where its recorded numbers are changed."""
    first = PerturbedGenerator(np.random.default_rng(4))
    before = draw(first)
    moved = {place: change(z) for place, z in first.numbers.items()}
    return before, draw(PerturbedGenerator(np.random.default_rng(4), moved))


def _shuffled(rng, x):
    rng.shuffle(x)
    return x


def test_shuffles_selections_and_counts_are_numpys_and_move_within_their_support():
    def draw(rng):
        grid = np.arange(8.0).reshape(4, 2)
        return [
            _shuffled(rng, np.arange(9)), np.array(_shuffled(rng, list(range(6)))),
            _shuffled(rng, grid), rng.choice(30, 5, replace=False),
            rng.choice(np.arange(9.0), (2, 3), replace=False), rng.binomial(9, 0.3, size=40),
            rng.poisson(2.0, size=40), rng.multinomial(20, np.ones(4) / 4, size=40),
            rng.binomial(9, 0.3), rng.poisson(3.0),
        ]  # fmt: skip

    plain = draw(np.random.default_rng(4))
    first, moved = _again(draw, lambda z: np.random.default_rng(7).random(z.shape))
    for before, after in zip(plain, first, strict=True):
        np.testing.assert_array_equal(before, after)
    for place, before in enumerate(plain[:8]):
        assert (moved[place] != before).any()
        assert moved[place].dtype == before.dtype
    for place in range(3):
        assert sorted(moved[place].ravel()) == sorted(plain[place].ravel())
    assert len(set(moved[3])) == 5
    assert len(set(moved[4].ravel())) == 6
    assert (moved[7].sum(axis=1) == 20).all()
    assert moved[7].min() >= 0
    for end, counts in ((1e-12, (0, 0)), (1 - 1e-12, (9, 18))):
        _, at_end = _again(draw, lambda z, end=end: np.full(z.shape, end))
        assert set(at_end[5]) == {counts[0]}
        assert abs(at_end[6].max() - counts[1]) <= 3
    for k, mean in ((5, 2.7), (6, 2.0)):
        _, many = _again(draw, lambda z: np.random.default_rng(8).random(z.shape))
        assert abs(many[k].mean() - mean) < 1


def test_what_is_recorded_and_not_moved_is_drawn_again():
    for draw in (
        lambda rng: rng.integers(-3, 9, size=(20, 3)),
        lambda rng: rng.choice([1.0, 25.0], size=(20, 8)),
        lambda rng: rng.permutation(9),
        lambda rng: rng.choice(30, size=(2, 3), replace=False),
        lambda rng: rng.choice(np.arange(12.0) ** 2, size=5, replace=False),
        lambda rng: rng.binomial(12, 0.3, size=(20, 3)),
        lambda rng: rng.binomial(np.array([0, 3, 9]), np.array([0.5, 0.0, 1.0]), size=(4, 3)),
        lambda rng: rng.poisson(np.array([0.1, 30.0]), size=(20, 2)),
        lambda rng: rng.multinomial(20, [0.2, 0.0, 0.5, 0.3], size=20),
        lambda rng: _shuffled(rng, np.arange(7.0)),
        lambda rng: np.array(_shuffled(rng, list(range(5)))),
        lambda rng: rng.permuted(np.arange(18).reshape(3, 6), axis=1),
        lambda rng: rng.dirichlet([0.3, 1.0, 7.0], size=20),
        lambda rng: rng.gamma(0.7, 2.0, size=20),
        lambda rng: rng.beta(0.5, 3.0, size=20),
    ):
        before, after = _again(draw, np.array)
        np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-14)


def test_integers_permutations_and_fractions_move_within_their_support():
    def digits(rng):
        return rng.integers(-3, 9, size=50)

    first = _again(digits, lambda z: np.full_like(z, 1e-12))[1]
    last = _again(digits, lambda z: np.full_like(z, 1 - 1e-12))[1]
    assert (set(first.tolist()), set(last.tolist())) == ({-3}, {8})
    before, after = _again(lambda rng: rng.choice([1.0, 25.0], size=50), lambda z: 1 - z)
    np.testing.assert_array_equal(before + after, 26.0)
    before, after = _again(lambda rng: rng.permutation(7), lambda z: -z)
    np.testing.assert_array_equal(after, before[::-1])
    before, after = _again(lambda rng: rng.dirichlet(np.ones(4), size=5), lambda z: z**3)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert (after >= 0).all()
    assert np.abs(after - before).max() > 0.1


def test_seeds_and_single_integers_stay():
    first = PerturbedGenerator(np.random.default_rng(4))
    _ = first.integers(2**31, size=2), first.integers(5), first.choice(5)
    assert first.numbers == {}


def test_an_exponential_number_has_its_law():
    x = PerturbedGenerator(np.random.default_rng(0)).exponential(2.0, size=4000)
    np.testing.assert_allclose([x.mean(), x.std()], 2.0, rtol=0.1)


def test_moved_numbers_stay_where_a_draw_can_be():
    far = np.array([-100.0, 0.5, 100.0])
    assert within(far, "normal").tolist() == [-8.0, 0.5, 8.0]
    assert 0 < within(far, "uniform").min() < within(far, "uniform").max() < 1
    assert within(far, "free") is far


def test_what_several_samplers_share_is_not_kept_from_a_search():
    @shared
    def start(rng, count):
        return rng.normal(size=count)

    plain = start(np.random.default_rng(2), 3)
    first = PerturbedGenerator(np.random.default_rng(2))
    np.testing.assert_array_equal(start(first, 3), plain)
    moved = {place: z + 1 for place, z in first.numbers.items()}
    np.testing.assert_allclose(
        start(PerturbedGenerator(np.random.default_rng(2), moved), 3), plain + 1
    )
    np.testing.assert_array_equal(start(np.random.default_rng(2), 3), plain)
    kept = partial(shared, perturbed=False)(start.__wrapped__)
    still = PerturbedGenerator(np.random.default_rng(2), moved)
    np.testing.assert_array_equal(kept(still, 3), plain)


def test_a_stream_apart_is_numpys_and_moves_with_the_other():
    plain, first = np.random.default_rng(4), PerturbedGenerator(np.random.default_rng(4))
    expected = apart(plain).normal(size=3)
    seed = np.random.default_rng(4).integers(2**31, size=2)
    np.testing.assert_array_equal(np.random.default_rng(seed.tolist()).normal(size=3), expected)
    np.testing.assert_array_equal(apart(first).normal(size=3), expected)
    # The stream that it came from goes on as if the other one were not there.
    assert plain.random() == first.random()
    moved = {place: z + 1 for place, z in first.numbers.items() if z.ndim}
    again = apart(PerturbedGenerator(np.random.default_rng(4), moved))
    np.testing.assert_allclose(again.normal(size=3), expected + 1)


def test_a_copy_of_a_generator_draws_and_moves_the_same():
    first = PerturbedGenerator(np.random.default_rng(4))
    copy = deepcopy(first)
    x = copy.normal(size=3)
    np.testing.assert_array_equal(first.normal(size=3), x)
    assert first.numbers is copy.numbers
    moved = {place: z + 1 for place, z in first.numbers.items()}
    again = deepcopy(PerturbedGenerator(np.random.default_rng(4), moved))
    np.testing.assert_allclose(again.normal(size=3), x + 1)
