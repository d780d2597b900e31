"""The pytest plugin in projects of their own: what it collects, what it shows, what it costs."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
HEAD = """
import jax.numpy as jnp
import attlas as at

def draw(rng, count):
    return {"x": rng.normal(size=(count, 3))}

less = at.Control("a tenth of the right side", factor=0.1)
more = at.Control("ten times the right side", factor=10.0)
"""
CLAIM = """
@at.inequality(sample=draw, search_over="x", controls=[{controls}])
def {name}(x, *, factor=1.0):
    r'''$$\\|x\\|_2 \\le c \\|x\\|_1$$'''
    return jnp.linalg.norm(x), {constant} * factor * jnp.linalg.norm(x, 1)
"""
GOOD = HEAD + CLAIM.format(name="good", constant=1.0, controls="less")
CORNER = HEAD + CLAIM.format(name="corner", constant=0.95, controls="less, more")


@pytest.fixture
def pytest_in(tmp_path):
    """Run pytest with the plugin in a folder of the given files."""

    def run(files: dict[str, str], *arguments: str, alone: bool = False) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTEST_ADDOPTS": ""}
        # Other installed plugins import what they please.
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if alone else {}
        # An installed plugin is found by its entry point; a second name for it would be refused.
        found = entry_points(group="pytest11", name="attlas") and not alone
        named = () if found else ("-p", "attlas.testing.plugin")
        command = [sys.executable, "-m", "pytest", *named, "-q"]
        done = subprocess.run(
            [*command, "--rootdir", str(tmp_path), *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.thorough
def test_claims_and_controls_are_items_and_the_witness_is_the_message(pytest_in):
    files = {
        "paper/claims_good.py": GOOD,
        "paper/claims_corner.py": CORNER,
        "paper/claims_broken.py": "import attlas\nx = 1 / 0\n",
        "paper/claims_insurance.py": "raise RuntimeError('not for attlas')\n",
        "paper/test_other.py": "def test_other():\n    assert True\n",
    }
    code, said = pytest_in(files, "--continue-on-collection-errors", "-rA")
    assert code == 1
    assert "PASSED paper/claims_good.py::good\n" in said
    assert "PASSED paper/claims_good.py::good[a tenth of the right side]" in said
    assert "PASSED paper/claims_corner.py::corner[a tenth of the right side]" in said
    assert "3 failed" not in said
    assert "2 failed, 4 passed, 1 error" in said
    # an attack finds the corner that 64 draws miss, and shows it
    assert "the challenge found a counterexample" in said
    witness = said.split("witness\n", 1)[1].splitlines()[0].strip()
    assert witness.startswith("x = [")
    assert "sides      left " in said
    replay = next(line for line in said.splitlines() if line.startswith("replay "))
    assert 'attlas.replay("paper/claims_corner.py:corner", {"x": [' in replay
    assert "control 'ten times the right side' is SUPPORTED, expected VIOLATED" in said
    # the user's own line, without our traceback
    assert "claims_broken.py:2: ZeroDivisionError" in said
    assert "Traceback" not in said
    assert "insurance" not in said


@pytest.mark.thorough
def test_a_claim_is_chosen_by_its_id_by_a_word_and_by_its_last_failure(pytest_in):
    files = {"claims_good.py": GOOD, "claims_corner.py": CORNER}
    code, said = pytest_in(files, "--collect-only")
    assert code == 0, said
    ids = [line for line in said.splitlines() if "::" in line]
    assert ids == [
        "claims_corner.py::corner",
        "claims_corner.py::corner[a tenth of the right side]",
        "claims_corner.py::corner[ten times the right side]",
        "claims_good.py::good",
        "claims_good.py::good[a tenth of the right side]",
    ]
    drawn = ("--attlas-effort", "0")
    assert "1 passed" in pytest_in(files, ids[4], *drawn)[1]
    assert "2 passed, 3 deselected" in pytest_in(files, "-k", "good", *drawn)[1]
    # One worker makes the check that a claim and its controls share.
    code, said = pytest_in(files, "-n", "2", "--dist", "loadgroup", "-vv", *drawn)
    done = [line for line in said.splitlines() if line.startswith("[gw") and "::good" in line]
    workers = {line.partition("]")[0] for line in done}
    assert (code, len(done), len(workers)) == (1, 2, 1), said
    code, said = pytest_in(files, "--lf", *drawn)
    assert (code, f"FAILED {ids[2]}" in said, "passed" in said) == (1, True, False), said


NOTHING_TO_MOVE = r"""
import jax, jax.numpy as jnp, numpy as np
import attlas as at

def draw(key, count):
    return {"x": np.asarray(jax.random.normal(key, (count, 3)))}

@at.inequality(sample=draw, controls=[at.Control("a tenth of the right side", factor=0.1)])
def fixed(x, *, factor=1.0):
    r"\|x\|_2 \le \|x\|_1"
    return jnp.linalg.norm(x), factor * jnp.linalg.norm(x, 1)
"""


@pytest.mark.thorough
def test_a_claim_that_passes_says_how_it_was_searched_or_why_it_was_not(pytest_in):
    files = {"claims_fixed.py": NOTHING_TO_MOVE, "claims_good.py": GOOD}
    code, said = pytest_in(files, "-rP", "--attlas-effort", "0.1")
    assert (code, "4 passed" in said) == (0, True), said
    searches = [line for line in said.splitlines() if line.startswith("search ")]
    assert "of fresh draws; no draw of its sampler by a JAX key could be moved: " in searches[0]
    assert searches[1].endswith(" evaluations, largest left / right 1")
    _, said = pytest_in(files, "-rP", "--attlas-effort", "0", "claims_good.py")
    assert "search     none: it was not asked for (--attlas-effort)" in said


@pytest.mark.thorough
def test_a_project_names_its_files_a_budget_of_none_misses_the_corner_and_xdist_runs(pytest_in):
    table = '[tool.attlas]\nclaims = ["mine.py"]\n'
    files = {"pyproject.toml": table, "mine.py": CORNER, "claims_own.py": GOOD}
    code, said = pytest_in(
        files, "--attlas-effort", "0", "--attlas-instances", "40", "-rA", "-n", "2"
    )
    assert code == 1
    assert "1 failed, 4 passed" in said
    assert "PASSED mine.py::corner\n" in said
    assert "40 of 40, seed 0" in said


@pytest.mark.thorough
def test_a_counterexample_is_kept_and_met_first_by_later_tests(pytest_in, tmp_path):
    files = {"claims_corner.py": HEAD + CLAIM.format(name="corner", constant=0.95, controls="less")}
    code, said = pytest_in({**files, "pytest.ini": "[pytest]\nattlas_results = kept\n"})
    assert (code, "stored witness" in said) == (1, False), said
    assert (tmp_path / "kept" / "witnesses" / "claims_corner" / "corner.json").is_file()
    # Random instances alone miss the corner: what fails is the instance that was kept.
    code, said = pytest_in(files, "--attlas-effort", "0")
    assert (code, "stored witness: " in said) == (1, True), said
    assert not (tmp_path / "attlas-results").exists()
    code, said = pytest_in(files, "--attlas-effort", "0", "--attlas-results", "elsewhere")
    assert (code, "2 passed" in said) == (0, True), said


@pytest.mark.thorough
def test_a_damaged_witness_is_a_warning_and_a_folder_that_cannot_be_written_too(pytest_in):
    damaged = {"kept/witnesses/claims_good/good.json": "{", "claims_good.py": GOOD}
    code, said = pytest_in(damaged, "--attlas-effort", "0", "--attlas-results", "kept")
    assert code == 0, said
    assert "good.json" in said
    assert "search again with `attlas challenge`" in said
    files = {"claims_corner.py": CORNER, "taken": "a file where a folder is to be\n"}
    code, said = pytest_in(files, "claims_corner.py", "--attlas-results", "taken")
    assert code == 1
    assert "the counterexample could not be stored" in said
    assert "the challenge found a counterexample" in said


def test_projects_that_do_not_use_it_pay_nothing(pytest_in):
    test = (
        "import sys\n\n"
        "def test_nothing_is_imported():\n"
        "    assert 'jax' not in sys.modules and 'numpy' not in sys.modules\n"
        "    assert not [name for name in sys.modules if name.startswith('attlas.verify')]\n"
        "    assert not [name for name in sys.modules if name.startswith('attlas.projects')]\n"
    )
    files = {
        "test_it.py": test,
        "claims_insurance.py": "raise RuntimeError('attlas')\n",
        "pyproject.toml": "[tool.other]\n",
    }
    code, said = pytest_in(files, "-W", "error", alone=True)
    assert (code, "1 passed" in said) == (0, True), said


def test_the_entry_point_names_this_plugin(pytest_in):
    table = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (entry,) = table["project"]["entry-points"]["pytest11"].items()
    assert entry == ("attlas", "attlas.testing.plugin")
    code, said = pytest_in({}, "--help")
    assert code == 0
    assert "--attlas-effort=X" in said
