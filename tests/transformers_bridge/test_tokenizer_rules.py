"""Bounded rules give the library's tokens, and refuse what lengthens or repeats a text."""

import pytest

from attlas.core.errors import UserError
from attlas.transformers.tokenizer_rules import bounded_encoder

tokenizers = pytest.importorskip("tokenizers", reason="an extra")


def tokenizer(**parts):
    found = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"a": 0, "b": 1, "type": 2}, unk_token="a")
    )
    found.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    for name, part in parts.items():
        setattr(found, name, part)
    return found


def enclosing(single, *names):
    return tokenizers.processors.TemplateProcessing(
        single=single, special_tokens=[(name, 2) for name in names]
    )


def test_tokens_are_those_of_the_library():
    rules = tokenizers.normalizers
    usual = tokenizer(
        normalizer=rules.Sequence([rules.NFKC(), rules.Lowercase(), rules.Replace("c", "b")]),
        post_processor=enclosing("type $A", "type"),
    )
    assert bounded_encoder(usual)("A C b") == usual.encode("A C b").ids == [2, 0, 1, 1]
    assert bounded_encoder(tokenizer())("a b") == [0, 1]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"normalizer": tokenizers.normalizers.Prepend("a" * 17)}, "writes 17 characters"),
        ({"post_processor": enclosing(" ".join(["$A"] * 17))}, "repeats it"),
        ({"post_processor": enclosing("type " * 33 + "$A", "type")}, "few tokens"),
        (
            {
                "pre_tokenizer": tokenizers.pre_tokenizers.Sequence(
                    [tokenizers.pre_tokenizers.ByteLevel()] * 3
                )
            },
            "more than twice",
        ),
    ],
)
def test_rules_that_lengthen_a_text_are_refused_at_once(parts, said):
    with pytest.raises(UserError, match=said):
        bounded_encoder(tokenizer(**parts))


def test_what_rules_make_of_each_other_is_refused_on_a_text():
    doubling = tokenizers.normalizers.Replace("a", "aa")
    encode = bounded_encoder(tokenizer(normalizer=tokenizers.normalizers.Sequence([doubling] * 20)))
    assert encode("b") == [1]
    with pytest.raises(UserError, match="more than 16 times longer"):
        encode("a" * 9)
