"""Files of labels and of pairs are read right, or refused in one line."""

import numpy as np
import pytest

from attlas.audit.labelled_batch import drawn_examples, labelled_text, paired_texts
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import Tokenizer

WORDS = ("[CLS]", "[SEP]", "good", "bad", "film")
CONFIG = {"id2label": {"0": "negative", "1": "positive"}}


def encode(text):
    return [0, *(WORDS.index(word) for word in text.split()), 1]


TOKENIZER = Tokenizer(WORDS, (0, 1), None, encode, None)


@pytest.fixture
def files(tmp_path):
    def write(text, labels=""):
        (tmp_path / "a.txt").write_text(text)
        (tmp_path / "labels.txt").write_text(labels)
        return tmp_path / "a.txt", tmp_path / "labels.txt"

    return write


def labelled(pair, most=9, length=9, **config):
    return labelled_text(TOKENIZER, CONFIG | config, *pair, length=length, most=most)


def test_each_line_has_its_label_in_the_order_of_the_draw(files):
    lines = ["good film", "bad film", "bad", "good good good film"]
    batch = labelled(files("\n".join(lines), "1\nnegative\n0\npositive\n"))
    expected = {(2, 4): 1, (3, 4): 0, (3,): 0, (2, 2, 2, 4): 1}
    for sequence, label in zip(batch.sequences, batch.labels, strict=True):
        assert expected.pop(tuple(sequence[1:-1].tolist())) == label
    assert not expected
    assert "all of its 4 lines" in batch.source


def test_a_line_that_is_cut_ends_in_its_special_token_as_in_transformers(files):
    batch = labelled(files("good bad film\nbad\n", "0\n1\n"), length=3)
    assert batch.sequences is not None
    assert sorted(row.tolist() for row in batch.sequences) == [[0, 2, 1], [0, 3, 1]]
    assert batch.source.endswith("lines longer than 3 tokens, which end there: 1")


def test_lines_that_the_tokenizer_does_not_know_are_refused(files):
    """Control: with one unknown word in twelve tokens the lines are read."""
    strange = TOKENIZER._replace(unknown=WORDS.index("bad"))
    pair = files("bad bad\nbad bad bad\n", "0\n1\n")
    with pytest.raises(UserError, match="does not know 56 % of the tokens of the lines: give"):
        labelled_text(strange, CONFIG, *pair, length=9, most=9)
    file, _ = files("bad\tbad bad\nbad bad\tbad\n")
    with pytest.raises(UserError, match="does not know"):
        paired_texts(strange, file, length=9, most=9)
    pair = files("good good bad film\ngood good good film\n", "0\n1\n")
    assert len(labelled_text(strange, CONFIG, *pair, length=9, most=9).sequences) == 2


def test_a_file_sorted_by_label_gives_both_labels(files):
    text, labels = "good\n" * 500 + "bad\n" * 500, "1\n" * 500 + "0\n" * 500
    batch = labelled(files(text, labels), most=32)
    assert 4 < batch.labels.sum() < 28
    assert "32 of its 1000 lines, drawn at random with seed 0" in batch.source
    assert batch.labels[:16].std() > 0  # the first of them, too


@pytest.mark.parametrize(
    ("text", "labels", "config", "said"),
    [
        ("good\nbad\n", "1\n", {}, r"labels.txt has 1 labels for 2 lines of .*: give one for each"),
        ("good\nbad\n", "1\n2\n", {}, r"label '2' \(number 2\) is no class of the model"),
        ("good\nbad\n", "1\nfair\n", {}, r"label 'fair' .* give negative, positive, or their"),
        ("good\n\n", "1\n0\n", {}, "line 2 of the text has no tokens"),
        (
            "good\n",
            "1\n",
            {"problem_type": "multi_label_classification"},
            "several classes at once",
        ),
    ],
)
def test_labels_that_do_not_fit_are_one_line(files, text, labels, config, said):
    with pytest.raises(UserError, match=said) as refused:
        labelled(files(text, labels), **config)
    assert "\n" not in str(refused.value)


def test_pairs_are_queries_and_their_documents(files):
    file, _ = files("good\tgood film\nbad\tbad film\nfilm\tgood film\n")
    batch = paired_texts(TOKENIZER, file, length=9, most=9)
    assert batch.documents is not None
    documents = [row[1:-1].tolist() for row in batch.documents]
    assert documents == [[3, 4], [2, 4]]  # each document once
    found = {
        row[1]: documents[place] for row, place in zip(batch.sequences, batch.labels, strict=True)
    }
    assert found == {2: [2, 4], 3: [3, 4], 4: [2, 4]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("good\tfilm\nbad film\n", "line 2 is no pair: give a query, one tabulator"),
        ("good\tfilm\tbad\n", "line 1 is no pair"),
        ("\tfilm\n", "line 1 is no pair"),
        ("good\tfilm\ngood\tbad\n", r"line 2 has the query of line 1 again \('good'\)"),
        ("good\tfilm\n", "has 1 pairs of query and document: give at least 2"),
        ("good\tfilm\nbad\tfilm\n", "one document for all queries"),
        ("", "has 0 pairs"),
    ],
)
def test_pairs_that_are_none_are_one_line(files, text, said):
    file, _ = files(text)
    with pytest.raises(UserError, match=said):
        paired_texts(TOKENIZER, file, length=9, most=9)


def test_examples_are_drawn_without_repetition():
    places = drawn_examples(1000, 64)
    assert len(set(places)) == 64
    assert np.mean(np.array(places) < 500) == pytest.approx(0.5, abs=0.2)
