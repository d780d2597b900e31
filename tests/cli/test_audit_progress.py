"""Bars go to standard error, lines stay."""

from attlas.cli.audit_progress import level_bars


def test_lines_are_said_whole_and_nothing_goes_to_standard_output(capsys):
    with level_bars() as (progress, say):
        progress("weights", 1, 3)
        say("results/[0].layer was altered")
        progress("weights", 3, 3)
        progress("data", 1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "results/[0].layer was altered" in shown.err
