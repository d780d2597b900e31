import json
import resource

import pytest

from attlas.core.errors import UserError
from attlas.transformers import tokenizer_trial
from attlas.transformers.tokenizer import read_tokenizer
from attlas.transformers.tokenizer_trial import require_buildable

SECONDS = 2.0
PLAIN = {
    **dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor")),
    "version": "1.0",
    "decoder": None,
    "added_tokens": [],
    "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
}
FLAGS = ("single_word", "lstrip", "rstrip", "special")
ADDED = {"id": 1, "content": "a", "normalized": True, **dict.fromkeys(FLAGS, False)}
DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}


def splitting(pattern):
    rule = {"type": "Split", "pattern": {"Regex": pattern}}
    return PLAIN | {"pre_tokenizer": rule | {"behavior": "Isolated", "invert": False}}


def calls(count):
    """Patterns each of which calls the next one twice."""
    called = "".join(rf"(?<g{i}>a\g<g{i + 1}>?\g<g{i + 1}>?)" for i in range(count))
    return splitting(f"{called}(?<g{count}>a)")


def doublings(count):
    """Rules that double a letter, and a token that they are applied to."""
    rules = {"type": "Sequence", "normalizers": [DOUBLES] * count}
    return PLAIN | {"normalizer": rules, "added_tokens": [ADDED]}


def hidden(document):
    """The same document, with a letter of `Regex` written as its number."""
    return json.dumps(document).replace("Regex", r"\u0052egex")


def used():
    total = resource.getrusage(resource.RUSAGE_CHILDREN)
    return total.ru_utime + total.ru_stime


@pytest.mark.parametrize(
    "text",
    [json.dumps(calls(40)), json.dumps(doublings(40)), hidden(calls(40))],
    ids=["calls", "doublings", "hidden"],
)
def test_a_file_that_would_be_built_for_hours_ends_in_one_line(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    before = used()
    with pytest.raises(UserError, match=r"tokenizer\.json takes more than 1 s to build") as refused:
        read_tokenizer(tmp_path, {})
    assert used() - before < SECONDS
    assert "\n" not in str(refused.value)


def test_usual_patterns_short_rules_and_a_large_vocabulary_pass(tmp_path):
    words = {f"w{number}": number for number in range(100_000)}
    large = {"model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"}}
    usual = splitting(r"\p{N}{1,3}| ?\p{L}+")
    before = used()
    require_buildable(json.dumps(usual).encode())
    assert used() - before < SECONDS / 4  # a process that imports `tokenizers` alone
    for document in (calls(3), doublings(2), usual | large, PLAIN):
        require_buildable(json.dumps(document).encode())
    (tmp_path / "tokenizer.json").write_text(json.dumps(splitting("a+")))
    encode = read_tokenizer(tmp_path, {}).encode
    assert encode is not None
    assert encode("a") == [0]


def test_a_file_without_patterns_starts_no_process(monkeypatch):
    started = []
    monkeypatch.setattr("subprocess.run", lambda *command, **_: started.append(command))
    require_buildable(
        json.dumps(PLAIN | {"added_tokens": [ADDED | {"normalized": False}]}).encode()
    )
    assert started == []


@pytest.mark.parametrize("merge", ["a b", ["a", "b"]])
def test_a_merge_to_an_unknown_token_is_refused_before_the_library_panics(merge, tmp_path, capfd):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [merge]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(PLAIN | {"model": model}))
    with pytest.raises(UserError, match="merges 'a' and 'b' to a token that the vocabulary lacks"):
        read_tokenizer(tmp_path, {})
    assert capfd.readouterr().err == ""


def test_pairs_beside_a_vocabulary_are_refused_before_the_library_panics(tmp_path, capfd):
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    with pytest.raises(UserError, match="merges 'a' and 'b' to a token that the vocabulary lacks"):
        read_tokenizer(tmp_path, {"model_type": "gpt2"})
    assert capfd.readouterr().err == ""


def test_a_piece_that_is_shorter_than_its_prefix_is_refused_before_the_library_panics(
    tmp_path, capfd
):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    document = PLAIN | {"model": model | {"continuing_subword_prefix": "##"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match="merges 'b' without its prefix '##', which is longer"):
        read_tokenizer(tmp_path, {})
    assert capfd.readouterr().err == ""


def test_a_panic_in_the_trial_ends_in_one_line(tmp_path, monkeypatch, capfd):
    # Merges that are not checked before: what the trial says stays in its process.
    monkeypatch.setattr(tokenizer_trial, "_require_merges_of", lambda content: None)
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}
    document = splitting("a+") | {"model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match="makes the library that builds it panic"):
        read_tokenizer(tmp_path, {})
    assert capfd.readouterr().err == ""


def test_a_piece_that_continues_a_word_is_merged_without_its_prefix():
    model = {"type": "BPE", "vocab": {"a": 0, "##b": 1, "ab": 2}, "merges": ["a ##b"]}
    document = PLAIN | {"model": model | {"continuing_subword_prefix": "##"}}
    assert require_buildable(json.dumps(document).encode()) is None
