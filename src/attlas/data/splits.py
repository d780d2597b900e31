"""Seeded, disjoint splits into training, validation and test examples."""

from typing import NamedTuple

import numpy as np

from attlas.core.errors import UserError


class Split(NamedTuple):
    """Examples and their labels, aligned along the first axis.

    Attributes:
        inputs: array of n examples, or n texts in an object array.
        labels: n integer labels.
    """

    inputs: np.ndarray
    labels: np.ndarray


class Splits(NamedTuple):
    """Training, validation and test examples; no example is in two of them."""

    train: Split
    validation: Split
    test: Split


def split_groups(groups: np.ndarray, sizes: tuple[int, ...], seed: int) -> tuple[np.ndarray, ...]:
    r"""Random disjoint index sets that keep equal examples on one side.

    Groups are shuffled and distributed in order. If a set is full in the middle of a group, the
    remaining examples of the group are not used.

    Args:
        groups: group numbers [n]; examples of one group never stand in two sets.
        sizes: wanted sizes of all sets but the last, which takes what remains.

    Returns:
        One vector of indices for each size, and one more.

    Raises:
        UserError: if nothing remains for the last set.

    Examples:
        >>> [part.size for part in split_groups(np.arange(10), (6, 3), seed=0)]
        [6, 3, 1]
    """
    is_list = np.ndim(sizes) == 1
    if not (is_list and all(isinstance(size, int | np.integer) and size >= 0 for size in sizes)):
        raise UserError(f"sizes = {sizes}: give whole numbers of at least 0")
    if np.ndim(groups) != 1:
        raise UserError(f"groups has shape {np.shape(groups)}: give the group of each example")
    _, members = np.unique(groups, return_inverse=True)
    order = np.random.default_rng(seed).permutation(members.max(initial=-1) + 1)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    shuffled = np.argsort(rank[members], kind="stable")
    index_sets, start = [], 0
    for size in sizes:
        index_sets.append(shuffled[start : start + size])
        start += size
        while 0 < start < shuffled.size and (
            members[shuffled[start]] == members[shuffled[start - 1]]
        ):
            start += 1
    if start >= shuffled.size:
        raise UserError(f"splits {sizes} leave nothing of {shuffled.size} examples: ask for fewer")
    return (*index_sets, shuffled[start:])
