"""Building a tokenizer from its file in a process of its own first, whose time is limited.

The library `tokenizers` compiles the patterns of a file and applies its rules to the file's own
tokens while it builds: twenty-five patterns that call each other twice take seconds, and each one
more twice as long. It cannot be interrupted there, and lets no other thread run.
"""

import re
import signal
import subprocess
import sys

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
    if not _COSTLY.search(content):
        return
    seconds = 1 + len(content) // _BYTES_PER_SECOND
    command = [sys.executable, "-I", "-c", _PROGRAM, str(seconds), str(_MEMORY)]
    ended = subprocess.run(command, input=content, capture_output=True, check=False).returncode
    if -ended in (signal.SIGXCPU, signal.SIGKILL):
        raise UserError(f"takes more than {seconds} s to build: its rules are damaged")
    if ended < 0:
        raise UserError("ends the process that builds it: its rules are damaged")
