"""`attlas list` shows what scanning finds."""

import pytest

from attlas.cli.main import main
from attlas.experiments.find import find_experiments
from attlas.projects.bibliography import all_references
from attlas.verify.registry import find_claims


@pytest.fixture
def shown(capsys, monkeypatch):
    """What a command printed in a wide terminal, after it ended well."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        return capsys.readouterr().out

    return run


def test_claims_are_listed_whole(shown):
    out = shown("list", "claims")
    assert [claim.name for claim in find_claims() if claim.name not in out] == []


def test_claims_say_over_what_they_are_attacked(shown):
    (line,) = (row for row in shown("list", "claims").splitlines() if "/lemma-12 " in row)
    assert line.split()[-1] == "W"


def test_claims_say_why_they_are_not_attacked(shown):
    out = shown("list", "claims")
    assert [row for row in out.splitlines() if "/lemma-3-6-small " in row and "not attacked" in row]
    assert not [row for row in out.splitlines() if "/lemma-12 " in row and "not attacked" in row]


def test_experiments_are_listed(shown):
    out = shown("list", "experiments")
    assert [each.name for each in find_experiments() if each.name not in out] == []


def test_papers_come_with_their_titles(shown):
    out = shown("list", "papers")
    keys = {claim.paper for claim in find_claims()}
    assert keys
    assert [key for key in keys if all_references()[key].title[:40] not in out] == []
