"""Building a tokenizer from its file in a process of its own first, whose time is limited.

The library `tokenizers` compiles the patterns of a file and applies its rules to the file's own
tokens while it builds: twenty-five patterns that call each other twice take seconds, and each one
more twice as long. It cannot be interrupted there, and lets no other thread run. Merges that make
a piece longer than all of the vocabulary end in a panic, which it writes on the screen; these are
refused before.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from attlas._files.budget import TOKENIZER, parse_json
from attlas._files.plain_file import Damaged, printable
from attlas.core.errors import UserError

_BYTES_PER_SECOND = 2**21
"""A usual vocabulary is built four times as fast."""
_MEMORY = 2**31
"""Bytes of addresses; the largest vocabulary that is read needs a quarter."""
_COSTLY = re.compile(rb'Regex|"normalized"\s*:\s*true|\\u00[2-7]')
"""Patterns, tokens that rules are applied to, and letters that are written so as to hide either."""
_PROGRAM = (
    "import resource, sys\n"
    "seconds, memory = map(int, sys.argv[1:])\n"
    "resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))\n"
    "resource.setrlimit(resource.RLIMIT_AS, (memory, memory))\n"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    "from tokenizers import Tokenizer\n"
    "Tokenizer.from_buffer(sys.stdin.buffer.read())\n"
)


def require_buildable(content: bytes) -> None:
    """Refuse a tokenizer.json that takes long to build; do nothing where nothing in it can.

    The limit is one processor second, and another one for each two megabytes. What the library
    refuses at once is left to it, for its own words.

    Args:
        content: of the file.

    Raises:
        UserError: if building takes longer, more memory than two gigabytes, or ends the process;
            the text is to follow the file's name.

    Examples:
        >>> require_buildable(b'{"model": {"type": "WordLevel"}}')
    """
    if b'"merges"' in content:
        _require_merges_of(content)
    if not _COSTLY.search(content):
        return
    seconds = 1 + len(content) // _BYTES_PER_SECOND
    command = [sys.executable, "-I", "-c", _PROGRAM, str(seconds), str(_MEMORY)]
    trial = subprocess.run(command, input=content, capture_output=True, check=False)
    ended = trial.returncode
    if ended > 0 and b"PanicException" in trial.stderr:
        # Here the library would write its trace on the screen.
        raise UserError("makes the library that builds it panic: its rules are damaged")
    if -ended in (signal.SIGXCPU, signal.SIGKILL):
        raise UserError(f"takes more than {seconds} s to build: its rules are damaged")
    if ended < 0:
        raise UserError("ends the process that builds it: its rules are damaged")


def _require_merges_of(content: bytes) -> None:
    """Refuse merges that the library panics at; what is no such document is left to it."""
    try:
        document = parse_json(content, TOKENIZER)
    except Damaged:
        return
    model = document.get("model") if isinstance(document, dict) else None
    if not isinstance(model, dict):
        return
    merges, vocabulary = model.get("merges"), model.get("vocab")
    if isinstance(merges, list) and isinstance(vocabulary, dict):
        prefix = model.get("continuing_subword_prefix")
        require_known_merges(merges, vocabulary, prefix if isinstance(prefix, str) else "")


def require_known_merges(
    merges: Iterable[Any], vocabulary: Mapping[str, Any], prefix: str = ""
) -> None:
    """Refuse merges of two tokens of a vocabulary to none of it.

    Args:
        merges: pairs, or texts with a space between two pieces; others are left to the library.
        vocabulary: holds every token as a key.
        prefix: what a piece that continues a word begins with.

    Raises:
        UserError: if there is such a pair, or a piece shorter than the prefix, which it names; the
            text is to follow the file's name.

    Examples:
        >>> require_known_merges(["a b"], {"a": 0, "b": 1, "ab": 2})
        >>> require_known_merges(["a b"], {"a": 0, "b": 1})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: merges 'a' and 'b' to a token that the vocabulary lacks
    """
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(p) is str for p in pair):
            continue
        first, second = pair
        known = first in vocabulary and second in vocabulary
        if known and len(second.encode()) < len(prefix.encode()):
            what = f"merges {printable(second)[:40]!r} without its prefix"
            raise UserError(f"{what} {printable(prefix)[:40]!r}, which is longer")
        if known and first + second[len(prefix) :] not in vocabulary:
            what = f"merges {printable(first)[:40]!r} and {printable(second)[:40]!r}"
            raise UserError(f"{what} to a token that the vocabulary lacks")
