"""How many threads a model runs on: all that PyTorch has, or one where they wait for each other."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from attlas.capture.captured_model import CapturedModel

_TOKENS = 2**12
_GAIN = 0.8
"""Share of the time on one thread below which all threads are worth their processors."""


@contextmanager
def quickest_threads(model: CapturedModel, sequences: Sequence[np.ndarray]) -> Iterator[int]:
    """Run PyTorch on all its threads or on one, whichever runs the model in less time.

    Threads of OpenMP meet after every operation, and those that are early spin, unless the
    variable OMP_WAIT_POLICY was "passive" when PyTorch was loaded. Where another process has the
    core of the last one they spin for its time slice: on two cores that other work keeps busy, a
    batch of 128 sentences took 2.4 s on one thread of a small encoder, and 127 s on two.

    Args:
        model: the model that will run inside.
        sequences: vectors of token numbers, or images, that it will run on; none are read when
            PyTorch has one thread.

    Yields:
        The number of threads; the old one returns at the end.

    Examples:
        >>> from attlas.capture.captured_model import captured_module
        >>> model = captured_module(torch.nn.Linear(2, 2))
        >>> before = torch.get_num_threads()
        >>> with quickest_threads(model, []) as threads:
        ...     1 <= threads <= before
        True
        >>> torch.get_num_threads() == before
        True
    """
    threads = torch.get_num_threads()
    try:
        if threads > 1 and sequences:
            inputs = _middle_batch(model, sequences)
            torch.set_num_threads(1)
            alone = _seconds(model, inputs)
            torch.set_num_threads(threads)
            if _seconds(model, inputs) > _GAIN * alone:
                torch.set_num_threads(1)
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(threads)


def _middle_batch(model: CapturedModel, sequences: Sequence[np.ndarray]) -> np.ndarray:
    """The sequences of the batch in which the median token of all is."""
    batches = model.batches(sequences, _TOKENS)
    sizes = [len(members) * model.length(sequences[members[0]]) for members in batches]
    middle = int(np.searchsorted(np.cumsum(sizes), sum(sizes) / 2))
    return np.stack([sequences[member] for member in batches[middle]])


def _seconds(model: CapturedModel, tokens: np.ndarray) -> float:
    """The time of the second run: the first may still load and allocate."""
    for _ in range(2):
        start = time.perf_counter()
        model.logits(tokens)
    return time.perf_counter() - start
