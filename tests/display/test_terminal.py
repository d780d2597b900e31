"""Tables break no word and no number at any width, and say what they leave out."""

import io
import os
import re
import struct
import subprocess
import sys

import pytest

from attlas._jax.processes import checker_variables
from attlas.claims.claim import Status
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.cli.check import COLUMNS, _row
from attlas.cli.main import main
from attlas.display import terminal
from attlas.display.terminal import layout, plain
from attlas.verify.registry import find_claims

WIDTHS = (60, 80, 100, 120, 200)
WIDE = 10_000
LEFT_OUT = re.compile(r"No room for [^:]*:\s+`COLUMNS=\d+`[^.]*\.")


def texts(lines):
    return ["".join(text for text, _ in line) for line in lines]


def test_a_number_stays_with_its_percent_sign(capsys, monkeypatch):
    sentence = "all of them together fail with probability at most 5 % or 12 % of the time"
    for width in range(9, 60):
        monkeypatch.setattr(terminal, "terminal_width", lambda width=width: width)
        terminal.say(sentence)
        lines = capsys.readouterr().out.splitlines()
        assert not any(line.startswith("%") for line in lines)
        assert " ".join(lines) == sentence


@pytest.fixture(scope="module")
def rows():
    """The table of `attlas check` for the longest names of every status and every outcome."""
    claims = [
        max((c for c in find_claims() if c.status is status), key=lambda c: len(c.name))
        for status in Status
    ]
    found, outcomes = [], [*Outcome, *Outcome]
    for claim, outcome in zip(claims, outcomes, strict=False):
        verdict = Verdict(outcome, "said", slack=-8.882e-16, tightness=0.99871)
        control = ControlReport("false", Outcome.VIOLATED, Verdict(Outcome.VIOLATED, "said"))
        search = ChallengeReport(0.99953, False, 8, 50, verdict, evaluations=400)
        report = CheckReport(
            claim.name, verdict, (control,), outcome, search, detection=(1 - 1 / 1.0213,)
        )
        found.append(_row(claim, report))
    return found


def pieces(row):
    """The words of a row, those of its name folded after the slash."""
    words = {word for cell in row for word in cell.split()}
    return words | set(re.findall(r"[^/]+/|[^/]+", row[0]))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_of_the_table_of_check_is_broken(rows, width):
    found = layout(COLUMNS, rows, width, always=("verdict",))
    lines = texts(found.lines)
    assert max(map(len, lines)) <= width
    known = {word for row in rows for word in pieces(row)}
    known |= {word for heading in COLUMNS for word in heading.split()}
    assert {word for line in lines for word in line.split()} - known == {lines_rule(lines)}
    shown = " ".join(lines)
    for row in rows:
        # "VIOLATED (expected)" may stand on two lines.
        assert all(word in shown for word in row[COLUMNS.index("verdict")].split())
    assert ("challenge" in found.left_out) == ("0.9995" not in shown)
    if width < 200:
        assert found.left_out
        assert layout(COLUMNS, rows, found.needed, always=("verdict",)).left_out == ()
        assert layout(COLUMNS, rows, found.needed - 1, always=("verdict",)).left_out != ()


def lines_rule(lines):
    return next(line for line in lines if set(line) == {"─"})


def test_the_claim_comes_first_and_its_verdict_next(rows):
    lines = texts(layout(COLUMNS, rows, 80, always=("verdict",)).lines)
    heading = lines[lines.index(lines_rule(lines)) - 1]
    assert heading.split()[:2] == ["claim", "verdict"]
    assert "1.021 times smaller" in " ".join(texts(layout(COLUMNS, rows, WIDE).lines))


def test_a_wide_output_has_every_column_on_one_line_per_row(rows):
    found = layout(COLUMNS, rows, WIDE)
    assert (found.left_out, len(found.lines)) == ((), len(rows) + 2)
    for row, line in zip(rows, texts(found.lines)[2:], strict=True):
        assert re.split(r" {2,}", line) == list(row)


def test_names_are_folded_after_the_slash_before_a_verdict_is_left_out():
    found = layout(("claim", "verdict"), [("paper2024/lemma-1", "SUPPORTED")], 21, ("verdict",))
    assert texts(found.lines)[2:] == ["paper2024/  SUPPORTED", "lemma-1"]
    assert found.needed == 28


def test_where_no_table_fits_a_row_is_a_paragraph():
    row = ("paper2024/a-long-lemma", "NOT_APPLICABLE", "-8.882e-16")
    found = layout(("claim", "verdict", "slack"), [row], 26, ("verdict",))
    assert texts(found.lines) == [
        "paper2024/a-long-lemma", "  verdict: NOT_APPLICABLE", "  slack: -8.882e-16", "",
    ]  # fmt: skip
    assert found.left_out == ()


def test_wide_signs_and_control_characters_keep_the_columns():
    found = layout(("name", "value"), [("注意/a", "1"), ("b\x1b[2J", "2 3")], 40)
    assert texts(found.lines)[2:] == ["注意/a    1", "b\\x1b[2J  2 3"]


def is_folded(word, long):
    """Whether a part of a path, such as that of a folder, begins and ends beside a slash."""
    before, found, after = long.partition(word)
    return bool(found) and before[-1:] in ("", "/") and (not after or word.endswith("/"))


def test_a_pipe_has_the_width_of_the_terminal_or_100(monkeypatch):
    closed = io.StringIO()
    for stream in ("__stdout__", "__stderr__", "__stdin__"):
        monkeypatch.setattr(sys, stream, closed)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal.terminal_width() == 100
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal.terminal_width() == 72
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal.terminal_width() == 100


def test_facts_stand_under_each_other(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    terminal.show_fact("verdict", "SUPPORTED: holds on every one")
    assert capsys.readouterr().out.splitlines() == [
        "verdict     SUPPORTED:", "            holds on", "            every one",
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "command",
    [
        ("list", "papers"),
        ("list", "claims", "julistiono2024optimizing"),
        ("list", "experiments"),
        ("data",),
        ("doctor",),
        ("run", "direction", "rates", "--estimate"),
        ("power", "julistiono2024optimizing/lemma-12", "--evaluations", "0"),
        ("check", "lemma-12", "liu2021analyzing/erratum-2", "--processes", "1"),
        ("check", "lemma-12", "--seeds", "2", "--processes", "1"),
        ("challenge", "lemma-12", "--evaluations", "64"),
    ],
    ids=" ".join,
)
def test_no_command_breaks_a_word(command, width, capsys, monkeypatch, tmp_path):
    for name, value in checker_variables(1).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ATTLAS_RESULTS", str(tmp_path))
    monkeypatch.setenv("ATTLAS_DATA", "/data")

    def words(width):
        monkeypatch.setattr(terminal, "terminal_width", lambda: width)
        with pytest.raises(SystemExit) as left:
            main(command)
        assert not left.value.code
        out = capsys.readouterr().out
        # A path is one word, however long.
        assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= width
        assert len(LEFT_OUT.findall(out)) == out.count("No room for")
        # What is measured differs from one run to the next.
        out = re.sub(r"[\d.]+(?=\s+(?:s|min)\s+(?:by|to|ago))", "0", LEFT_OUT.sub("", out))
        return {word for word in out.split() if set(word) != {"─"}}

    words(WIDE)  # a search names the instance that an earlier one stored
    whole = words(WIDE)
    broken = {word for word in words(width) if word.removesuffix(":") not in whole}
    assert {word for word in broken if not any(is_folded(word, long) for long in whole)} == set()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are of Unix")
def test_a_real_terminal_gets_a_table_of_its_width(tmp_path):
    import fcntl
    import pty
    import termios

    main_end, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    done = subprocess.Popen(
        [sys.executable, "-m", "attlas.cli.main", "--results", str(tmp_path),
         "check", "julistiono2024optimizing/lemma-12", "liu2021analyzing/theorem-4-soft-attention"],
        stdout=other_end, stderr=subprocess.DEVNULL, env=environment | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(other_end)
    out = b""
    while chunk := _read(main_end):
        out += chunk
    assert done.wait() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out.decode()).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "julistiono2024optimizing/" in line and "SUPPORTED" in line]
    assert [line for line in lines if line.startswith("No room for ")]


def _read(end):
    try:
        return os.read(end, 65536)
    except OSError:  # Linux says so where the other end is closed
        return b""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain & simple", "plain & simple"),
        (r"$\left(x\right) \leq y$, then $\ge$", "left(xright) <= y, then >="),
        (r"for $\|W\|_{p,p}\,\mathrm{sharp}$", "for ||W||_{p,p} sharp"),
        ("a price of $5", "a price of $5"),
    ],
)
def test_mathematics_is_read_without_dollars_and_backslashes(text, shown):
    assert plain(text) == shown
