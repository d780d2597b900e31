"""`attlas power`: the table of wrong constants."""

import pytest

from attlas._jax.processes import checker_variables
from attlas.cli.main import main

LEMMA = "julistiono2024optimizing/lemma-12"


def test_the_sweep_is_one_table(capsys, monkeypatch):
    for name, value in checker_variables(1).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as left:
        main(["power", LEMMA, "--factor", "2", "--factor", "10", "--evaluations", "0"])
    out = capsys.readouterr().out
    assert not left.value.code
    rows = [line.split() for line in out.splitlines() if line.strip()[:1] in ("0", "1")]
    # One-entry and constant matrices are drawn: both ends are attained.
    assert rows == [["0", "x2", "drawn", "drawn"], ["1", "x2", "drawn", "drawn"]]


def test_a_factor_below_one_is_refused_in_one_line(capsys):
    with pytest.raises(SystemExit) as left:
        main(["power", LEMMA, "--factor", "0.5"])
    shown = capsys.readouterr()
    assert (left.value.code, shown.out, shown.err.count("\n")) == (2, "", 1)
