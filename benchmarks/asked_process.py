"""A process of a benchmark that works whenever it is asked: a line in, a line of JSON out."""

import json
import subprocess
import sys
from typing import Any


class AskedProcess:
    """A benchmark module as a child process.

    Attributes:
        child: the process.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str = "") -> None:
        """Begin a piece of work."""
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def answer(self) -> Any:
        """The next line of output."""
        assert self.child.stdout is not None
        return json.loads(self.child.stdout.readline())

    def run(self, line: str) -> Any:
        """Begin and wait."""
        self.ask(line)
        return self.answer()

    def end(self) -> None:
        """Stop the process."""
        self.child.terminate()
        self.child.wait()
