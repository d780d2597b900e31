import jax
import pytest

from attlas.verify import compiled


@pytest.fixture
def forgotten(monkeypatch) -> list[int]:
    """One entry for each time that JAX forgets."""
    found: list[int] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: found.append(len(found)))
    monkeypatch.setattr(compiled, "_compiled", set())
    return found


def test_few_claims_keep_their_programs_however_often_they_are_checked(forgotten):
    for _ in range(10):
        for number in range(compiled.MAX_CLAIMS):
            compiled.bound_compiled(f"a/{number}")
    assert forgotten == []


def test_many_claims_are_forgotten_in_turn(forgotten):
    for number in range(3 * compiled.MAX_CLAIMS + 1):
        compiled.bound_compiled(f"a/{number}")
    assert len(forgotten) == 3
