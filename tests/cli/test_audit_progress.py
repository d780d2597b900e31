"""Bars go to standard error, lines stay."""

from attlas.cli.audit_progress import ProgressLines, level_bars


def test_lines_are_said_whole_and_nothing_goes_to_standard_output(capsys):
    with level_bars() as (progress, say):
        progress("weights", 1, 3)
        say("results/[0].layer was altered")
        progress("weights", 3, 3)
        progress("data", 1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "results/[0].layer was altered" in shown.err


def test_a_log_without_a_screen_has_a_line_in_half_a_minute():
    lines = ProgressLines()
    said = [lines.after("deep", done, 100, 10.0 * done) for done in range(1, 101)]
    assert sum(map(bool, said)) == 32  # after 4, 7, ... and 97 of them
    assert said[3] == "level deep: 4 of 100, about 16.0 min left"
    assert said[99] == ""
