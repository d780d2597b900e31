"""The mutants of `benchmarks.mutants`: what the operators do, how a mutant is named, the table."""

import ast
import threading

import pytest
from benchmarks.mutants.entered import profiled
from benchmarks.mutants.judged import reasons
from benchmarks.mutants.operators import ROOT, Mutant, digest, mutants_of
from benchmarks.mutants.table import RESULTS, read_table

from attlas.data.sparse_majority import sinusoidal_positions
from attlas.verify.registry import find_claims

FORMULA = '''
def bound(x: float, sizes: Array, power: float = 7) -> float:
    """Two times the largest size."""
    if x < 0:
        raise ValueError(f"x = {x} is below {0}")
    require_finite(x, 3)
    largest = jnp.max(sizes, axis=0)[1]
    return 2 * largest**0.5 - x
'''


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The mutants of a text, and what each makes of the statement that it changes."""
    monkeypatch.setattr("benchmarks.mutants.operators.ROOT", tmp_path)

    def changes(text):
        file = tmp_path / "library.py"
        file.write_text(text, encoding="utf-8")
        return {mutant.name: mutant.line() for mutant in mutants_of(file)}

    return changes


def test_every_operator_changes_its_node_and_checks_of_arguments_stay(made):
    assert sorted(made(FORMULA).values()) == sorted([
        "largest = jnp.min(sizes, axis=0)[1]",
        "largest = jnp.max(sizes, axis=1)[1]",
        "largest = jnp.max(sizes, axis=0)[2]",
        "return 3 * largest ** 0.5 - x",
        "return 4 * largest ** 0.5 - x",
        "return 2 * largest ** 1.5 - x",
        "return 2 * largest ** 0.5 + x",
        "return 2 * largest ** 0.5",
        "return -x",
        "return largest ** 0.5 - x",
        "return 2 - x",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "changes"),
    [
        ("-x / 3", ["x / 3", "-x", "1 / 3", "-x / 4", "-x / 6"]),
        ("sqrt(x[-1])", ["x[-1]", "sqrt(x[-1 - 1])"]),
        ("x <= y < 7", ["x < y < 7", "x <= y <= 7", "x <= y < 8", "x <= y < 14"]),
        ("mean(x) + 'text'", []),
        ("x.mean(axis=-1)", ["x.sum(axis=-1)", "x.mean(axis=-1 - 1)"]),
        ("x ** -y", ["x ** (-y + 1)", "x ** y"]),
    ],
)
def test_operators(made, formula, changes):
    found = made(f"def f(x, y) -> float:\n    return {formula}\n").values()
    assert sorted(found) == sorted(f"return {change}" for change in changes)


def test_a_mutant_survives_other_names_and_other_lines(made):
    renamed = FORMULA.replace("largest", "top").replace("2 * top", "(\n        2 * top").replace(
        "- x", "- x\n    )"
    )  # fmt: skip
    assert made(FORMULA).keys() == made(renamed).keys()
    first, second = (ast.parse(text).body[0] for text in (FORMULA, renamed))
    assert isinstance(first, ast.FunctionDef)
    assert isinstance(second, ast.FunctionDef)
    assert digest(first) == digest(second)
    other = ast.parse(FORMULA.replace("0.5", "0.6")).body[0]
    assert isinstance(other, ast.FunctionDef)
    assert digest(other) != digest(first)


def test_a_node_that_is_gone_is_named():
    gone = Mutant("src/attlas/norms/matrix.py", "frobenius_norm", "sign flipped", 99_999)
    with pytest.raises(LookupError, match=r"no mutant src/attlas/norms/matrix\.py:frobenius_norm"):
        gone.changed()


def test_the_table_names_each_mutant_once():
    table = read_table()
    names = [row.name for row in table]
    assert len(set(names)) == len(names)
    assert {row.result for row in table} <= set(RESULTS)
    assert all(row.by for row in table if row.result == "killed")
    killed = {row.name for row in table if row.result == "killed"}
    assert not killed & reasons().keys()


def test_every_judgement_is_of_a_mutant_that_exists_and_says_what_it_is():
    files = {key.partition(":")[0] for key in reasons()}
    names = [mutant.name for file in files for mutant in mutants_of(ROOT / file)]
    kinds = {key.rpartition("@")[0] for key in names}
    existing = {*names, *kinds, *(kind.rpartition(":")[0] for kind in kinds)}
    assert not reasons().keys() - existing
    for reason in reasons().values():
        assert reason.startswith(("Equivalent", "Cost", "True"))


def test_a_function_that_a_thread_enters_is_noted():
    entered: set[tuple[str, str]] = set()
    with profiled(entered):
        thread = threading.Thread(target=sinusoidal_positions, args=(2, 3))
        thread.start()
        thread.join()
    assert ("src/attlas/data/sparse_majority.py", "sinusoidal_positions") in entered


@pytest.mark.thorough
def test_claims_that_killed_a_mutant_are_there():
    claims = {claim.name for claim in find_claims()}
    assert {row.by for row in read_table() if row.by_claim and ".py" not in row.by} <= claims
