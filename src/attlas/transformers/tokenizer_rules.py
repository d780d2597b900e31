"""Tokenizers of the library `tokenizers` with the cost of their rules bounded.

A file's rules may lengthen a text, each what the one before made of it, and the library applies
them all: thirty rules that replace a letter by two make a gigabyte of one letter. They may also
take long, such as patterns that match in exponentially many ways, or pieces of all lengths.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from attlas._files.budget import MOST_EXPANSION, TOKENIZER
from attlas._files.plain_file import printable
from attlas.core.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MOST_RULES = 64
_MOST_ENCLOSING = 32
"""Special tokens that a template adds to a text; models of language add two."""
_SECONDS, _LETTERS_PER_SECOND = 1.0, 100_000
"""Processor seconds for any text, and letters that each further one must split; a usual tokenizer
splits a million."""
_LONGEST_WORD = 256
"""WordPiece takes the third power of the letters of a word; it is 100 everywhere."""


def bounded_encoder(tokenizer: "Tokenizer") -> Callable[[str], list[int]]:
    """Text to tokens, special ones added, by the rules of a file.

    Raises:
        UserError: at once if a rule may lengthen a text by more than `MOST_EXPANSION`; on a text
            that the rules lengthen by more or enclose in larger numbers than `TOKENIZER` allows,
            that takes more than a second and as many as it has hundred thousands of letters, or
            that the library cannot split.

    Examples:
        >>> from tokenizers import Tokenizer, models
        >>> bounded_encoder(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))("a")
        [0]
    """
    with library_errors("has rules that the library does not write out"):
        parts = tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.post_processor
        # A sequence without members is false.
        documents = [None if part is None else json.loads(part.__getstate__()) for part in parts]
    for document in documents:
        _require_bounded(_tables(document))
    with library_errors("has rules that the library does not make one by one"):
        rules = _normalizers(documents[0])
    has_patterns = any("Regex" in str(rule.get("pattern")) for rule in _tables(documents[0]))
    if getattr(tokenizer.model, "max_input_chars_per_word", 0) > _LONGEST_WORD:
        raise UserError(f"looks for pieces of words with more than {_LONGEST_WORD} characters")

    def encode(text: str) -> list[int]:
        changed = text
        with library_errors("the tokenizer cannot split a text"):
            for rule in rules:
                if has_patterns:
                    _require_quick(rule, changed)
                changed = rule.normalize_str(changed)
                if len(changed) > MOST_EXPANSION * (len(text) + MOST_EXPANSION):
                    raise UserError(
                        f"the tokenizer makes a text more than {MOST_EXPANSION} times longer: "
                        "its rules are damaged"
                    )
            tokens = _encoded(tokenizer, text)
        # Rules that enclose a text have numbers of their own.
        if max(tokens, default=0) >= TOKENIZER.entries:
            raise UserError(
                f"the tokenizer numbers a token {max(tokens)}, of at most {TOKENIZER.entries - 1}"
            )
        return tokens

    return encode


def _encoded(tokenizer: "Tokenizer", text: str) -> list[int]:
    """The tokens of a text, unless they take too long.

    The library lets other threads run while it splits a batch, and cannot be interrupted: a thread
    that takes too long is left to the end of the process.
    """
    results: list[list[int]] = []
    errors: list[UserError] = []

    def split() -> None:
        try:
            with library_errors("the tokenizer cannot split a text"):
                results.append(tokenizer.encode_batch([text])[0].ids)
        except UserError as error:
            errors.append(error)

    most = _SECONDS + len(text) / _LETTERS_PER_SECOND
    began, used = time.monotonic(), time.process_time()
    thread = threading.Thread(target=split, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        # On a busy machine it is waiting that takes long, and beside busy threads the processor.
        if min(time.monotonic() - began, time.process_time() - used) > most:
            raise UserError(
                f"the tokenizer takes more than {most:.1f} s to split {len(text)} letters: its "
                "rules are damaged"
            )
    if errors:
        raise errors[0]
    return results[0]


def _require_quick(rule: Any, text: str) -> None:
    """Apply a rule that changes a text where its time is limited, and forget the result."""
    from tokenizers import Tokenizer, models

    alone = Tokenizer(models.BPE())
    alone.normalizer = rule
    _encoded(alone, text)


@contextlib.contextmanager
def library_errors(what: str) -> Iterator[None]:
    """Say in one line what the library `tokenizers` refuses, and what it is not prepared for.

    Raises:
        UserError: `what`, and the first line of the library's error.

    Examples:
        >>> with library_errors("no tokenizer"):
        ...     raise Exception("no vocabulary")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: no tokenizer (no vocabulary)
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # Errors of the library are no narrower than `Exception`, and a panic is not even that.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        said = str(error).partition("\n")[0]
        raise UserError(f"{what} ({printable(said)[:200]})") from None


def _normalizers(document: Any) -> list[Any]:
    """The rules that change a text, in order, those inside each other one by one."""
    from tokenizers.normalizers import Sequence

    rules, left = [], [] if document is None else [document]
    while left:
        rule = left.pop()
        if rule["type"] == "Sequence":
            left += reversed(rule["normalizers"])
        else:
            # The library makes a rule from a document only as the state of another one.
            made = Sequence([])
            made.__setstate__(json.dumps(rule).encode())
            rules.append(made)
    return rules


def _tables(document: Any) -> list[dict[str, Any]]:
    """The tables of a document that name a type."""
    tables, left = [], [document]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            tables += [value] if isinstance(value.get("type"), str) else []
            left += value.values()
        elif isinstance(value, list):
            left += value
    return tables


def _require_bounded(rules: list[dict[str, Any]]) -> None:
    """Check the rules of one step of a tokenizer."""
    kinds = [rule["type"] for rule in rules]
    if len(rules) > _MOST_RULES:
        raise UserError(f"has {len(rules)} rules in one step, of at most {_MOST_RULES}")
    if kinds.count("ByteLevel") > 2:
        raise UserError("writes the bytes of a text as letters more than twice")
    for rule in rules:
        kind = rule["type"]
        added = rule.get({"Replace": "content", "Prepend": "prepend"}.get(kind, ""), "")
        if len(added) > MOST_EXPANSION:
            raise UserError(
                f"has a rule {kind} that writes {len(added)} characters, of at most "
                f"{MOST_EXPANSION}"
            )
    copies = 1
    for rule in rules:
        if rule["type"] == "TemplateProcessing":
            single = rule["single"]
            copies *= sum("Sequence" in piece for piece in single)
            own = {name: len(token["ids"]) for name, token in rule["special_tokens"].items()}
            names = [piece["SpecialToken"]["id"] for piece in single if "SpecialToken" in piece]
            if unknown := [name for name in names if name not in own]:
                raise UserError(f"encloses a text in the unknown token {unknown[0]!r:.40}")
            if copies > MOST_EXPANSION or sum(own[name] for name in names) > _MOST_ENCLOSING:
                raise UserError("encloses a text in more than a few tokens, or repeats it")
