"""Pieces that are kept: a killed computation goes on after them."""

import numpy as np
import pytest

from attlas.core.checkpoint import checkpointed
from attlas.core.piece_cache import cached_pieces
from attlas.experiments.checkpoint_files import CheckpointFiles
from attlas.training.ensemble import in_chunks
from liu2021analyzing.library.levenberg_marquardt import levenberg_marquardt

DRAW = np.random.default_rng(0)


class Stopped(Exception):
    """In place of a signal that kills."""


def squares(calls, stop_at=None):
    def compute(some):
        for k in some:
            if k == stop_at:
                raise Stopped
            calls.append(k)
            yield {"square": np.array([k**2]), "half": (np.array(k / 2),)}

    return cached_pieces(7, 5, compute, lambda: {"square": 0, "half": (0,)})


def test_pieces_that_were_kept_are_not_computed_again(tmp_path):
    calls: list[int] = []
    plain = squares(calls)
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0), pytest.raises(Stopped):
        squares(calls, stop_at=3)
    calls.clear()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as second:
        again = squares(calls)
    assert calls == [3, 4]
    assert (second.resumed, second.made) == (3, 2)
    assert [piece["square"].tolist() for piece in again] == [[0], [1], [4], [9], [16]]
    assert [float(piece["half"][0]) for piece in again] == [float(p["half"][0]) for p in plain]
    calls.clear()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0):
        squares(calls)
    assert calls == []


def test_pieces_of_another_computation_are_not_used(tmp_path):
    def compute(some):
        return (np.array(k) for k in some)

    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0):
        cached_pieces(1, 2, compute, lambda: 0)
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as second:
        cached_pieces(2, 2, compute, lambda: 0)
    assert (second.resumed, second.made) == (0, 2)


def chunked():
    return in_chunks(lambda a: {"twice": 2 * a}, np.arange(5.0), 2)["twice"]


def fitted():
    x, y = DRAW.standard_normal((3, 6, 2)), DRAW.standard_normal((3, 6))
    return lambda: levenberg_marquardt(
        lambda w, x: w @ x, np.zeros((3, 2)), x, y, at_once=1
    ).unwrap()


@pytest.mark.parametrize(("compute", "count"), [(chunked, 3), (fitted(), 3)])
def test_chunks_of_trainings_and_of_least_squares_are_kept(tmp_path, compute, count):
    plain = compute()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as first:
        np.testing.assert_array_equal(compute(), plain)
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as second:
        np.testing.assert_array_equal(compute(), plain)
    assert (first.made, second.resumed, second.made) == (count, count, 0)
