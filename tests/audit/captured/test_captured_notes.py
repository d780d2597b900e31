"""The notes say what was read, and how right answers were judged."""

from dataclasses import replace

import numpy as np
from captured_models import library, random_model, random_tokens

library()

from attlas.audit.captured.captured_answers import CapturedAnswers  # noqa: E402
from attlas.audit.captured.captured_notes import captured_notes, guessing_caution  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402


def test_the_notes_name_the_pooling_and_the_number_of_documents():
    model = replace(captured_module(random_model("bert")).without_head(), pooling="cls")
    tokens = list(random_tokens(4))
    loss = CapturedAnswers(model, tokens[:2], np.arange(2), tokens[2:])
    notes = captured_notes(model, [None], tokens, loss, {}, "of a file")
    assert notes[0] == "Read: 4 sequences of 9 tokens, of a file."
    assert "2 queries look for their own among 2 documents" in notes[-1]
    assert "embeddings (last hidden states of the first token)" in notes[-1]


def test_a_model_of_images_without_a_head_is_said_to_have_none():
    model = captured_module(random_model("clip")).image_tower()
    images = [np.zeros((3, 12, 12))] * 2
    notes = captured_notes(model, [None], images, None, {}, "")
    assert notes[0] == "Read: 2 images of 12 times 12 points in 3 channels."
    assert notes[1].startswith("Tokens of an image are its patches")


def test_a_model_that_may_only_guess_is_named():
    """Control: one example more, and it is better than the most frequent of two classes."""
    model = captured_module(random_model("bert"))
    tokens = list(random_tokens(4))
    classes = CapturedAnswers(model, tokens, np.array([0, 1, 1, 0]))
    assert classes.guessing == 0.5
    note = guessing_caution(classes, 2, 0.5)
    assert note.startswith("The model answers 2 of 4 texts right, and naming the most frequent")
    assert "labels are those of config.json" in note
    assert guessing_caution(classes, 3, 0.500001) == ""
    retrieval = CapturedAnswers(model.without_head(), tokens[:2], np.arange(2), tokens[2:] * 5)
    assert retrieval.guessing == 0.1
    assert "drawing a document is right in a share of 0.1" in guessing_caution(retrieval, 0, 0.0)
