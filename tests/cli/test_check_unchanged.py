"""A verdict is shown again only where nothing that it follows from has changed."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attlas._jax.processes import checker_variables
from attlas.cli.main import main
from attlas.experiments import unchanged
from attlas.experiments.store import Store
from attlas.experiments.unchanged import check_inputs, package_digest
from attlas.experiments.verdicts import read_reports
from attlas.experiments.witness import write_witness
from attlas.projects import read_files
from attlas.verify.check_many import RUN_ALPHA
from attlas.verify.registry import find_claims

FILES = {
    "pyproject.toml": """
[tool.attlas]
key = "mine"
claims = ["squares.py", "chances.py"]
data = ["limit.txt"]
""",
    "squares.py": """
import attlas as at
from first import numbers, right

@at.inequality(sample=numbers, controls=[at.Control("half", factor=0.5)])
def squares(x, *, factor=1.0):
    "The square of a number below 1 is smaller."
    return x**2, right(x, factor)
""",
    "chances.py": """
import attlas as at

def coins(rng, count):
    return {"x": rng.uniform(size=count)}

@at.probability(
    sample=coins, independent="the number", controls=[at.Control("too likely", level=0.97)]
)
def below_three_quarters(x, *, level=0.5):
    "A uniform number is below three quarters."
    return x < 0.75, level
""",
    "first.py": """
from pathlib import Path

from second import right

def numbers(rng, count):
    limit = float(Path(__file__).with_name("limit.txt").read_text())
    return {"x": rng.uniform(0, limit, size=count)}
""",
    "second.py": """
def right(x, factor):
    return factor * x
""",
    "limit.txt": "1.0",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(read_files, "_READ", set())  # of all that this process read before
    monkeypatch.syspath_prepend(tmp_path)
    for name, value in {**checker_variables(2), "COLUMNS": "250"}.items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    for name in FILES:  # another test has modules of the same names
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.fixture
def computed(project, capsys):
    """Check the project, and how many verdicts were computed."""

    def run(*arguments: str, code: int = 0) -> int:
        names = () if any(name.endswith(".py") for name in arguments) else ("squares.py",)
        if "--challenge" not in arguments:
            arguments = (*arguments, "--challenge", "0")
        with pytest.raises(SystemExit) as left:
            main(["--results", str(project / "results"), "check", *names, *arguments])
        shown = capsys.readouterr()
        assert int(left.value.code or 0) == code, shown.out + shown.err
        said = re.search(r"verdicts? unchanged, computed .* ago; (\d+) computed now", shown.out)
        total = sum(map(int, re.findall(r"(\d+) claims? checked", shown.out)))
        return int(said[1]) if said else total

    return run


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_nothing_is_computed_twice_and_fresh_computes_all(project, computed):
    assert computed() == 1
    assert computed() == 0
    assert computed("--fresh") == 1
    ((report, _),) = read_reports(Store(project / "results"))
    assert report.verdict.outcome == "SUPPORTED"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("squares.py", "x**2", "x**4"),
        ("second.py", "factor * x", "factor * x * 1.01"),
        ("first.py", "uniform(0, limit", "uniform(0.1, limit"),
        ("limit.txt", "1.0", "0.9"),
    ],
    ids=["the claim", "a helper two imports away", "the sampler", "a data file"],
)
def test_an_edit_is_always_seen(project, computed, name, old, new):
    assert computed() == 1
    edit(project / name, old, new)
    assert computed() == 1
    assert computed() == 0


def test_an_edit_that_breaks_the_claim_is_not_hidden(project, computed):
    assert computed() == 1
    edit(project / "second.py", "factor * x", "0.5 * factor * x")
    assert computed(code=1) == 1
    assert computed(code=1) == 1  # what is not as expected is computed each time
    edit(project / "second.py", "0.5 * factor * x", "factor * x")
    assert computed() == 1


def test_settings_are_part_of_what_a_verdict_follows_from(project, computed):
    assert computed() == 1
    assert computed("--seed", "1") == 1
    assert computed("--instances", "50", "--seed", "1") == 1
    assert computed("--instances", "50", "--seed", "1") == 0
    assert computed("--seeds", "2") == 1  # of all seeds
    assert computed("--challenge", "1", "--effort", "0.02") == 1
    assert computed("--challenge", "1", "--effort", "0.02") == 0
    assert computed() == 0  # less is asked for than was computed
    assert computed("--challenge", "1", "--effort", "0.01") == 1
    write_witness(Store(project / "results"), "mine/squares", {"x": np.array(0.5)})
    assert computed("--challenge", "1", "--effort", "0.01") == 1


def test_a_file_that_nobody_declares_makes_a_verdict_compute_each_time(project, computed):
    edit(project / "pyproject.toml", 'data = ["limit.txt"]', "")
    assert [computed(), computed()] == [1, 1]


def test_a_module_that_no_statement_imports_makes_it_compute_each_time(project, computed):
    edit(
        project / "first.py",
        "from second import right",
        "import importlib\nright = importlib.import_module('sec' + 'ond').right",
    )
    assert [computed(), computed()] == [1, 1]


@pytest.mark.thorough
def test_only_statistical_verdicts_depend_on_how_many_claims_there_are(project, computed):
    both = ("squares.py", "chances.py")
    assert computed(*both) == 2
    assert computed(*both) == 0
    assert computed("squares.py") == 0
    assert computed("chances.py") == 1


def test_attlas_packages_processor_and_variables_are_seen(project, computed, monkeypatch):
    assert computed() == 1
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert computed() == 1
    for name in ("package_digest", "_processor", "_packages"):
        with monkeypatch.context() as other:
            answer = [Path("numpy-0.dist-info")] if name == "_packages" else "other"
            other.setattr(unchanged, name, lambda *_, answer=answer: answer)
            assert computed() == 1
        assert computed() == 1
    assert computed() == 0


def test_all_files_of_a_package_count_but_those_that_only_show(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "site").mkdir()
    seen = {package_digest(tmp_path)}
    for name in ("a.py", "data/table.json", "b.py"):
        (tmp_path / name).write_text("1")
        seen.add(package_digest(tmp_path))
    (tmp_path / "a.py").write_text("2")
    seen.add(package_digest(tmp_path))
    assert len(seen) == 5
    (tmp_path / "site" / "page.py").write_text("1")
    assert package_digest(tmp_path) in seen


def test_what_changes_while_a_check_runs_is_not_stored(project, monkeypatch):
    (claim,) = find_claims(["squares.py"])
    inputs = check_inputs([claim], None, 0, 0, 1.0, {})
    from attlas.verify.check import check

    report = check(claim, alpha=RUN_ALPHA / 2, challenge=0)
    assert inputs.package_is_same()
    assert inputs.stored_with(claim, report) is not None
    assert inputs.stored_with(claim, replace(report, source="0" * 64)) is None
    assert inputs.stored_with(claim, replace(report, undeclared=("table.csv",))) is None
    monkeypatch.setattr(unchanged, "package_digest", lambda: "edited meanwhile")
    assert not inputs.package_is_same()


def test_a_damaged_verdict_is_computed_again(project, computed):
    assert computed() == 1
    (file,) = (project / "results").rglob("squares.json")
    edit(file, "SUPPORTED", "VIOLATED")
    assert computed() == 1
