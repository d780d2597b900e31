"""A bar on a terminal, with a name, the number done and the time left; nothing in a pipe."""

import io
import sys

from attlas.display.terminal import progress_bar


class Terminal(io.StringIO):
    """Standard error as a terminal would be."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar("claims") as step:
        step(2)
        step(2)
    shown = screen.getvalue()
    for text in ("claims", "2/2", "left"):
        assert text in shown


def test_a_pipe_has_none(monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    with progress_bar("claims") as step:
        step(1)
    assert output.getvalue() == ""
