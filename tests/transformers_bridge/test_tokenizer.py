"""Tokenizers beside a model: known tokens, special tokens, and damaged files in one line."""

import json
import struct

import pytest

from attlas._files.budget import TOKENIZER
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import read_tokenizer

GPT2 = {"model_type": "gpt2"}
BYTES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]


def tokens(words, text):
    assert words.encode is not None
    return words.encode(text)


def scored(folder, pieces, *, cut=0, length=None):
    """A tokenizer of llama2.c; a later piece has a lower score."""
    raw = struct.pack("<i", 8)
    for number, piece in enumerate(pieces):
        size = len(piece.encode()) if length is None or number else length
        raw += struct.pack("<fi", -float(number), size) + piece.encode()
    (folder / "tok300.bin").write_bytes(raw[: len(raw) - cut])


def test_the_stories_tokenizer_gives_the_published_tokens(data_dir):
    words = read_tokenizer(data_dir / "stories260k", {})
    assert len(words.pieces) == 512
    assert words.special == (0, 1, 2)
    found = tokens(words, "Once upon a time, there was")
    assert found[:7] == [1, 403, 407, 261, 378, 432, 383]
    assert "".join(words.pieces[k] for k in found[1:]) == " Once upon a time, there was"


def test_pieces_merge_by_score_and_unknown_letters_are_bytes(tmp_path):
    scored(tmp_path, [*BYTES, "ab", " ", "a", "b", "c", "bc"])
    words = read_tokenizer(tmp_path, {})
    # "ab" is merged before "bc", which has the lower score
    assert tokens(words, "abc") == [1, 260, 259, 263]
    assert tokens(words, "é") == [1, 260, 0xC3 + 3, 0xA9 + 3]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: scored(folder, [*BYTES, " "], cut=1),
        lambda folder: scored(folder, [*BYTES, " "], length=-1),
        lambda folder: scored(folder, [*BYTES, " "], length=2**30),
        lambda folder: scored(folder, ["a", "b"]),
        lambda folder: (folder / "tok1.bin").write_bytes(b"ab"),
        lambda folder: (folder / "tokenizer.json").write_text('{"model": 3}'),
        lambda folder: (folder / "vocab.txt").write_bytes(b"\xff\xfe"),
        lambda folder: (folder / "vocab.json").write_text("[1]"),
        lambda folder: (folder / "vocab.json").write_text('{"a": 0, "b": 2}'),
        lambda folder: (folder / "vocab.json").write_text('{"a": "x"}'),
        lambda folder: (folder / "vocab.json").write_text("[" * 100_000),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, damage):
    damage(tmp_path)
    with pytest.raises(UserError) as caught:
        read_tokenizer(tmp_path, {})
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_word_pieces(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "hello"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    words = read_tokenizer(tmp_path, {})
    assert tokens(words, "Hello ab zzz") == [2, 8, 5, 7, 1, 3]
    assert (words.special, words.mask, words.unknown) == ((0, 1, 2, 3, 4), 4, 1)
    (tmp_path / "vocab.txt").write_text("\n".join(pieces[5:]))
    assert read_tokenizer(tmp_path, {}).encode is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_piece_of_a_vocabulary_may_end_lines_elsewhere(tmp_path, end, last):
    pieces = ["[UNK]", "[CLS]", "[SEP]", "\x85", "\u2028", "a\x0cb", "c"]
    text = end.join(pieces) + end * last
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert read_tokenizer(tmp_path, {}).pieces == tuple(pieces)


def test_an_empty_vocabulary_has_no_pieces(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"")
    assert read_tokenizer(tmp_path, {}).pieces == ()


def test_a_vocabulary_has_as_many_lines_as_a_tokenizer_has_entries(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"a\n" * (TOKENIZER.entries + 1))
    with pytest.raises(UserError, match=f"has more than {TOKENIZER.entries} lines"):
        read_tokenizer(tmp_path, {})


def test_byte_pairs(tmp_path):
    place = {"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}
    (tmp_path / "vocab.json").write_text(json.dumps(place))
    assert read_tokenizer(tmp_path, GPT2).encode is None
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    words = read_tokenizer(tmp_path, GPT2)
    assert tokens(words, "aba") == [2, 0]
    assert words.special == (3,)
    assert words.pieces[2] == "ab"
    (tmp_path / "merges.txt").write_text("#version: 0.2\na z\n")
    with pytest.raises(UserError, match="merges"):
        read_tokenizer(tmp_path, GPT2)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("gpt2", [6, 4]),
        ("opt", [2, 6, 4]),
        ("roberta", [0, 6, 4, 2]),
        ("qwen2", None),  # which splits a text by another rule
        (None, None),
    ],
)
def test_byte_pairs_are_enclosed_as_the_model_type_asks(tmp_path, kind, expected):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "ab", "<mask>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(pieces)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    words = read_tokenizer(tmp_path, {"model_type": kind})
    assert words.special == (0, 1, 2, 3, 7)
    assert (expected is None) == (words.encode is None)
    assert expected is None or tokens(words, "aba") == expected
    assert kind != "roberta" or tokens(words, "a<mask>") == [0, 4, 7, 2]


@pytest.mark.parametrize("kind", ["gpt2", "opt", "roberta"])
def test_byte_pairs_are_those_of_the_reference_library(tmp_path, kind):
    from tokenizers import ByteLevelBPETokenizer

    transformers = pytest.importorskip("transformers", reason="an extra of the tests")
    trained = ByteLevelBPETokenizer()
    text = "The film was good. It's a good film, a film that was a good one."
    trained.train_from_iterator([text] * 3, 300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    trained.save_model(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    if kind == "opt":  # as its repositories have it
        settings = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
    words = read_tokenizer(tmp_path, {"model_type": kind})
    for line in (text, "Two  spaces, é and 漢.", "\t1998!"):
        assert tokens(words, line) == reference(line)["input_ids"]


def test_a_tokenizer_of_the_library(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "hi": 1, "<mask>": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = read_tokenizer(tmp_path, {})
    assert tokens(words, "hi you") == [1, 0]
    assert (words.special, words.mask, words.unknown) == ((0, 2), 2, 0)


def test_padding_and_truncation_that_a_tokenizer_stores_are_not_applied(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[PAD]": 0, "good": 1, "film": 2}, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = read_tokenizer(tmp_path, {})
    assert tokens(words, "good film") == [1, 2]
    assert tokens(words, "good film good film") == [1, 2, 1, 2]


def test_added_tokens_that_a_tokenizer_flags_are_special(tmp_path):
    from tokenizers import AddedToken, Tokenizer, models

    tokenizer = Tokenizer(models.WordLevel({"hi": 0, "<s>": 1}, unk_token="hi"))
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|im_start|>"])
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = read_tokenizer(tmp_path, {})
    assert words.pieces == ("hi", "<s>", "<|begin_of_text|>", "<|im_start|>", "<tool_call>")
    assert words.special == (1, 2, 3)


def test_without_a_vocabulary_the_configuration_names_special_words(tmp_path):
    found = read_tokenizer(
        tmp_path, {"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": -1}
    )
    assert found.special == (1,)
    assert found.encode is None
