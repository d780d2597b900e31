"""Stubs of statements are no claims: nothing runs them and no check counts them."""

import pytest

from attlas.claims.todo import todo
from attlas.core.errors import UserError
from attlas.verify.registry import find_claims

STUB = 'from attlas.claims.todo import todo\n@todo("Lemma 1")\ndef lemma_1():\n    "$$x$$"\n'


def test_a_file_of_stubs_has_no_claim_and_is_no_mistake(tmp_path):
    (tmp_path / "claims_a.py").write_text(STUB)
    assert find_claims([str(tmp_path)]) == ()


def test_a_file_without_either_is_a_mistake(tmp_path):
    (tmp_path / "claims_b.py").write_text("x = 1")
    with pytest.raises(UserError, match="defines no claim"):
        find_claims([str(tmp_path)])


def test_a_stub_needs_its_place():
    with pytest.raises(UserError, match="needs where the statement stands"):
        todo(lambda: None)  # pyright: ignore[reportArgumentType]
