import pytest

from attlas.core.errors import UserError
from attlas.runs.find import find_experiments, find_named


def test_experiments_are_found_by_name_paper_and_all(squares):
    assert squares in find_experiments()
    assert find_named(["squares"]) == find_named(["toys"]) == (squares,)
    assert find_named(["squares", "all", "toys"])[0] is squares
    assert len(find_named(["all"])) == len(find_experiments())


def test_an_unknown_name_is_answered_with_the_nearest(squares):
    with pytest.raises(UserError, match="unknown experiment 'sqares': did you mean squares"):
        find_named(["sqares"])
    with pytest.raises(UserError, match="unknown experiment '': see `attlas list experiments`"):
        find_named([""])


def test_a_package_that_cannot_be_imported_is_named(monkeypatch):
    monkeypatch.setenv("ATTLAS_EXPERIMENTS", "no_such_package")
    with pytest.raises(UserError, match="names 'no_such_package'"):
        find_experiments()
