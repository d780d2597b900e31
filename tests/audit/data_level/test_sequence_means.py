"""Means over sequences, and beside them those without the sequences that are held out."""

import numpy as np

from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_means import SequenceMeans

VALUES = {"a": np.arange(8.0).reshape(4, 2)}


def test_sequences_that_are_held_out_have_no_part_in_what_chooses():
    means = SequenceMeans(DataSettings(), [1, 3])
    means.begin_layer()
    shown = means.note(VALUES, np.arange(4))
    assert shown["a"].tolist() == [3.0, 4.0]
    assert means.choosing[0]["a"].tolist() == [2.0, 3.0]
    assert np.all(means.choosing[0]["a_low"] >= 0)
    means.begin_layer()
    means.note(VALUES, np.array([3, 5, 1, 7]))  # places of these rows among the sequences
    assert means.choosing[1]["a"].tolist() == [4.0, 5.0]


def test_where_none_is_held_out_nothing_is_computed_twice():
    means = SequenceMeans(DataSettings(), ())
    means.begin_layer()
    means.note(VALUES, np.arange(4))
    assert means.choosing == [{}]


def test_of_no_sequence_there_is_no_number():
    means = SequenceMeans(DataSettings(), [0])
    means.begin_layer()
    means.note({"a": np.ones((1, 2))}, np.array([0]))
    assert np.isnan(means.choosing[0]["a_high"]).all()
