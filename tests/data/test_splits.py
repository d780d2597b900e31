import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.splits import split_groups


def test_parts_are_disjoint_seeded_and_complete():
    parts = split_groups(np.arange(50), (20, 10), seed=3)
    again = split_groups(np.arange(50), (20, 10), seed=3)
    assert sorted(np.concatenate(parts)) == list(range(50))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    assert not np.array_equal(parts[0], split_groups(np.arange(50), (20, 10), seed=4)[0])


@pytest.mark.parametrize("seed", range(5))
def test_equal_examples_stay_on_one_side(seed):
    groups = np.arange(60) // 4
    first, second, rest = (set(groups[p]) for p in split_groups(groups, (17, 9), seed))
    assert not first & second
    assert not (first | second) & rest


def test_too_large_a_size_is_refused():
    with pytest.raises(UserError, match="leave nothing of 5 examples"):
        split_groups(np.arange(5), (3, 2), seed=0)


@pytest.mark.parametrize("sizes", [(17, 9), (4, 20), (3, 3, 3)])
def test_groups_are_distributed_in_a_shuffled_order(sizes):
    """One example after the other; a set that is full waits for the next group."""
    groups = np.random.default_rng(1).integers(0, 12, 45)
    numbers = sorted(set(groups.tolist()))
    order = np.random.default_rng(6).permutation(len(numbers))
    line = [i for k in order for i in np.flatnonzero(groups == numbers[k])]
    wanted, at = [], 0
    for size in sizes:
        wanted.append(line[at : at + size])
        at += size
        while groups[line[at]] == groups[line[at - 1]]:
            at += 1
    found = split_groups(groups, sizes, seed=6)
    assert [part.tolist() for part in found] == [*wanted, line[at:]]


def test_a_first_set_may_be_empty():
    parts = split_groups(np.repeat([0, 1], 3), (0, 3), seed=0)
    assert [part.size for part in parts] == [0, 3, 3]
    assert [part.size for part in split_groups(np.zeros(4, int), (0,), seed=0)] == [0, 4]


def test_no_examples_are_refused():
    with pytest.raises(UserError, match="leave nothing of 0 examples"):
        split_groups(np.zeros(0, int), (0,), seed=0)


def test_a_first_set_of_one_example_leaves_out_the_rest_of_its_group():
    first, second, last = split_groups(np.repeat(np.arange(3), 2), (1, 2), seed=0)
    assert first.size == 1
    assert second.size == last.size == 2
    assert first[0] // 2 not in {*(second // 2), *(last // 2)}
