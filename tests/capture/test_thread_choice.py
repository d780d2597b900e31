"""A model runs on the number of threads that makes it quicker."""

import numpy as np
import pytest
from captured_models import library, random_model, random_tokens

torch, _ = library()

from attlas.capture import thread_choice  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.capture.thread_choice import quickest_threads  # noqa: E402

SEQUENCES = [*random_tokens(4, 9), *random_tokens(1, 12)]


@pytest.fixture
def model():
    """A model, built by one thread, that may run on two."""
    small = captured_module(random_model("bert"))
    torch.set_num_threads(2)
    yield small
    torch.set_num_threads(1)


@pytest.mark.parametrize(("together", "threads"), [(50.0, 1), (0.9, 1), (0.5, 2)])
def test_all_threads_are_used_where_they_are_worth_it(monkeypatch, model, together, threads):
    seconds = {1: 1.0, 2: together}
    batches = []

    def timed(model, tokens):
        batches.append(tokens.shape)
        return seconds[torch.get_num_threads()]

    monkeypatch.setattr(thread_choice, "_seconds", timed)
    with quickest_threads(model, SEQUENCES) as chosen:
        assert chosen == torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2
    assert batches == [(4, 9)] * 2  # the batch with most of the tokens


def test_threads_return_after_an_error_and_one_thread_is_not_timed(monkeypatch, model):
    def refuse(model, tokens):
        raise AssertionError("timed")

    monkeypatch.setattr(thread_choice, "_seconds", refuse)
    with pytest.raises(AssertionError, match="timed"), quickest_threads(model, SEQUENCES):
        pass
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    with quickest_threads(model, SEQUENCES) as threads:
        assert threads == 1


def test_a_run_takes_time(model):
    assert 0 < thread_choice._seconds(model, np.stack(SEQUENCES[:4])) < 60
