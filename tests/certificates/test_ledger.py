"""Every look at one set of examples is paid for, and the ledger survives what is done to it."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.certificates.ledger import Ledger, read_ledger, take_look, write_ledger
from attlas.certificates.predictions import predictions_of
from attlas.core.errors import UserError

MODELS = [predictions_of(str(k), [float(b) for b in f"{k:010b}"]) for k in range(100)]


def test_all_looks_together_cost_less_than_delta(tmp_path):
    ledger, shares = Ledger(0.05, 10), []
    for model in MODELS[:20]:
        ledger, share = ledger.look([model])
        shares.append(share)
    # each look for all results of those before: 11 counts and 1000 values of the test of order
    paid = [share * 11_000**place for place, share in enumerate(shares)]
    assert 0.95 < math.fsum(paid) < 1
    write_ledger(tmp_path / "l.json", ledger)
    read = read_ledger(tmp_path / "l.json", 0.05, 10)
    assert read == ledger
    assert read.look([MODELS[3]])[1] == shares[3]  # no new look
    assert read.look(MODELS[2:4])[1] < shares[-1]  # chosen among two: a look of its own


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("{}", "no ledger"),
        ('{"schema": 2, "delta": 0.05, "examples": 10, "looks": []}', "its seal does not fit"),
        ('{"schema": 1, "delta": 0.05, "examples": 10, "looks": [1]}', "no ledger"),
        ('{"schema": 1, "delta": 0.1, "examples": 10, "looks": []}', "use --delta 0.1"),
    ],
)
def test_damage_is_one_line(tmp_path, content, said):
    path = tmp_path / "l.json"
    path.write_text(content)
    with pytest.raises(UserError, match=said):
        read_ledger(path, 0.05, 10)


def test_who_changes_a_model_after_each_look_is_still_certified():
    """A model that copies the labels that its counts of errors reveal, one after the other."""
    rng = np.random.default_rng(0)
    labels, answers = rng.random(100) < 0.5, np.zeros(100, dtype=bool)
    ledger, errors, unpaid = Ledger(0.05, 100), [], []
    for k in range(40):
        trial = answers.copy()
        trial[k] = True
        ledger, share = ledger.look([predictions_of("m", (trial != labels) * 1.0)])
        if (trial != labels).sum() < (answers != labels).sum():
            answers = trial
        errors.append(held_out_bound(int((answers != labels).sum()), 100, 0.05 * share).bound)
        unpaid.append(held_out_bound(int((answers != labels).sum()), 100, 0.05).bound)
    assert min(unpaid) < 0.5 <= min(errors)  # on new examples it is right half of the time


def test_looks_at_the_same_time_are_all_paid_for(tmp_path):
    def look(model):
        return take_look(tmp_path / "l.json", 0.05, [model])

    with ThreadPoolExecutor(8) as threads:
        shares = list(threads.map(look, MODELS[:24]))
    assert len(set(shares)) == 24
    looks = read_ledger(tmp_path / "l.json", 0.05, 10).looks
    assert sorted(looks) == sorted((model.digest,) for model in MODELS[:24])


def test_what_is_used_up_is_refused():
    ledger = Ledger(0.05, 10, tuple((model.digest,) for model in MODELS[:70]))
    with pytest.raises(UserError, match="70 models were tested on these 10 examples"):
        ledger.look([MODELS[70]])
    with pytest.raises(UserError, match="give errors, 0 or 1 each"):
        Ledger(0.05, 1).look([predictions_of("m", [0.5])])


def test_another_test_set_is_refused():
    with pytest.raises(UserError, match="about 11 examples and the files have 10"):
        Ledger(0.05, 11).look(MODELS[:1])
