"""Sequences from texts and files; whatever is none is refused in one line."""

import os

import numpy as np
import pytest

from attlas.audit.read_batch import (
    default_text,
    lines_of_text,
    stored_batch,
    text_batch,
    token_batch,
)
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import NO_TOKENIZER, Tokenizer

LETTERS = Tokenizer(("?", *"abc"), (), None, lambda text: ["?abc".find(c) % 4 for c in text], 3)


def rows(found):
    return [row.tolist() for row in getattr(found, "sequences", found)]


def test_lines_are_cut_one_after_the_other_and_single_tokens_are_left_out():
    assert rows(text_batch(LETTERS, "abaaa\n\n b \nba".splitlines(), length=2, most=9)) == [
        [1, 2],
        [1, 1],
        [2, 1],
    ]
    assert rows(text_batch(LETTERS, ["ab", "ba"], length=5, most=1)) == [[1, 2]]


def test_texts_that_are_longer_than_a_sequence_are_counted(tmp_path):
    def longer(length, most):
        return text_batch(LETTERS, ["abab", "ab", "ababa"], length=length, most=most).longer

    assert longer(2, 9) == "lines longer than 2 tokens, which continue in the next sequence: 2"
    assert longer(2, 1).endswith(": 1")
    assert longer(5, 9) == ""
    file = written(tmp_path, "a.txt", b"5 6 7\n8 9\n1 2 3\n")
    assert token_batch(file, length=2, most=2).longer == (
        "sequences longer than 2 tokens, which end there: 1"
    )
    assert token_batch(file, length=3, most=9).longer == ""


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (NO_TOKENIZER, "ab", "no tokenizer"),
        (LETTERS, "a\nb\n", "no sequence of two"),
        (LETTERS, "cabc", "does not know 50 %"),
    ],
)
def test_texts_that_give_no_batch_are_refused(words, text, said):
    with pytest.raises(UserError, match=said):
        text_batch(words, text.splitlines(), length=4, most=4)


def test_a_text_of_another_kind_is_named_with_every_way_out():
    with pytest.raises(UserError) as caught:
        text_batch(LETTERS, ["xxay"], length=4, most=4, source="the built-in English stories")
    said = str(caught.value)
    assert "75 % of the tokens of the built-in English stories" in said
    assert "\n" not in said
    for way in ("--text FILE", "--tokens FILE", "--level weights"):
        assert way in said


def test_files_of_tokens(tmp_path):
    ids, lengths = np.array([5, 6, 7, 8, 9, 1]), np.array([3, 1, 2])
    np.savez(tmp_path / "a.npz", ids=ids, lengths=lengths)
    np.save(tmp_path / "a.npy", np.array([[5, 6, 7], [8, 9, 1]]))
    (tmp_path / "a.txt").write_text("5 6 7\n8\n\n9 1\n")
    assert rows(token_batch(tmp_path / "a.npz", length=2, most=9)) == [[5, 6], [9, 1]]
    assert rows(token_batch(tmp_path / "a.npy", length=9, most=1)) == [[5, 6, 7]]
    assert rows(token_batch(tmp_path / "a.txt", length=9, most=9)) == [[5, 6, 7], [9, 1]]


def npz(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def written(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


def truncated(folder):
    file = npz(folder, ids=np.arange(4), lengths=np.array([4]))
    return written(folder, "a.npz", file.read_bytes()[:-40])


def pickled(folder):
    np.save(folder / "a.npy", np.array([{}, 1], object), allow_pickle=True)
    return folder / "a.npy"


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: folder / "none.txt",
        lambda folder: npz(folder, ids=np.arange(4)),
        lambda folder: npz(folder, ids=np.arange(4), lengths=np.array([5])),
        lambda folder: npz(folder, ids=np.arange(4), lengths=np.array([-1, 5])),
        lambda folder: npz(folder, ids=np.arange(4), lengths=np.array([4.0])),
        lambda folder: npz(folder, ids=np.arange(4) / 2, lengths=np.array([4])),
        truncated,
        pickled,
        lambda folder: written(folder, "a.npz", b"no zip"),
        lambda folder: written(folder, "a.npy", b""),
        lambda folder: written(folder, "a.txt", b"1 2 x"),
        lambda folder: written(folder, "a.txt", b"1 " + b"9" * 30),
        lambda folder: written(folder, "a.txt", b"3\n4\n"),
        lambda folder: written(folder, "a.txt", b"\xff\xfe"),
    ],
)
def test_files_that_hold_no_tokens_are_refused_in_one_line(tmp_path, make):
    with pytest.raises(UserError) as caught:
        token_batch(make(tmp_path), length=9, most=9)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_are_read_as_utf_8(tmp_path):
    assert list(lines_of_text(written(tmp_path, "a", "é\n".encode()))) == ["é"]
    for content, said in ((b"\xff", "not a text in UTF-8"), (b"a\0b", "zero bytes")):
        with pytest.raises(UserError, match=said):
            list(lines_of_text(written(tmp_path, "a", content)))
    with pytest.raises(UserError, match="No such file"):
        list(lines_of_text(tmp_path / "none"))


@pytest.mark.parametrize("name", ["a.txt", "a.npy", "a.npz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="is not a regular file"):
        token_batch(tmp_path / name, length=9, most=9)


def test_our_own_text_has_a_story_per_line():
    lines = default_text().splitlines()
    assert len(lines) == 12
    assert min(len(line.split()) for line in lines) > 20


def test_models_of_attlas_keep_sequences():
    config = {"model_type": "attlas_encoder", "sequences": [[1, 2, 3], [4, 5]]}
    assert rows(stored_batch(config, length=2, most=1)) == [[1, 2]]
    assert stored_batch({"model_type": "bert", "sequences": [[1]]}, length=2, most=1) == []
    for wrong in ([["x"]], 7, [3], [[2**40]]):
        with pytest.raises(UserError, match="no sequences of tokens"):
            stored_batch(config | {"sequences": wrong}, length=2, most=1)
