"""What a command imports: as little as it uses, and nothing of an extra where none is needed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from attlas.core.errors import extras

ROOT = Path(__file__).parents[1]
MOST_REQUIRED = 16
MODULES_FOR_A_LEMMA = 55
FILES_FOR_A_LEMMA = 40
MODULES_FOR_A_SEARCH = 84
FILES_FOR_A_SEARCH = 63
"""Eleven modules and seven files of them evaluate ratios of small sides in digits."""
MODULES_FOR_LEMMA_12 = 117
PAPERS = tuple(path.name for path in (ROOT / "papers").iterdir() if (path / "__init__.py").exists())
LEMMA = '''
import jax.numpy as jnp

import attlas as at


def pairs(rng, count):
    return {"x": rng.normal(size=(count, 3)), "y": rng.normal(size=(count, 3))}


@at.inequality(sample=pairs, search_over=("x", "y"), controls=[at.Control("half", factor=0.5)])
def triangle(x, y, *, factor=1.0):
    r"""$$\\|x+y\\| \\le \\|x\\|+\\|y\\|$$"""
    norm = jnp.linalg.norm
    return norm(x + y), factor * (norm(x) + norm(y))
'''
PROGRAM = """
import sys
hidden, arguments = sys.argv[1].split(","), sys.argv[2:]
sys.modules.update(dict.fromkeys(filter(None, hidden)))
def run():
    from attlas.cli.main import main
    try:
        main(arguments)
    except SystemExit as left:
        code = left.code
    print("\\n".join(["", "MODULES", *(name for name, module in sys.modules.items() if module)]))
    return code
if __name__ == "__main__":
    sys.exit(run())
"""

ENTERED = """
import importlib.util, sys
package = importlib.util.find_spec("attlas").submodule_search_locations[0]
files = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(package):
        files.add(code.co_filename[len(package) + 1:])
sys.setprofile(note)
try:
    from attlas.cli.main import main
    main(sys.argv[1:])
except SystemExit as left:
    sys.setprofile(None)
    print("\\n".join(["ENTERED", *sorted(files)]))
    sys.exit(left.code)
"""


def imports(folder: Path, *arguments: str, hidden: str = "") -> tuple[int, str, list[str]]:
    """Exit code, standard error and modules of a command that runs in a process of its own."""
    # A file, so that worker processes that are spawned can import it.
    program = folder / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), hidden, *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stderr, done.stdout.partition("\nMODULES\n")[2].splitlines()


def below(modules: list[str], *packages: str) -> list[str]:
    return [m for m in modules if any(m == p or m.startswith(f"{p}.") for p in packages)]


def hidden_extras() -> str:
    return ",".join(sorted({name.replace("-", "_") for name in extras()["all"]}))


def test_required_dependencies_are_few_and_no_extra_repeats_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[\[<>=~ ]", each)[0] for each in project["dependencies"]}
    assert len(required) <= MOST_REQUIRED
    assert required & extras()["all"] == set()


def test_a_check_of_one_lemma_imports_what_it_uses_and_no_extra(tmp_path):
    code, said, modules = imports(tmp_path, "check", "lemma-12", hidden=hidden_extras())
    assert (code, said) == (0, "")
    unused = ("audit", "experiments.panels", "models", "torch", "training", "transformers")
    assert below(modules, *(f"attlas.{name}" for name in unused)) == []
    third = ("scipy.stats", "optax", "latex2mathml", "concurrent.futures.process")
    assert below(modules, *third) == []
    assert [m for m in modules if ".experiments" in m and m.startswith(PAPERS)] == []
    assert len(below(modules, "attlas", *PAPERS)) <= MODULES_FOR_LEMMA_12


@pytest.mark.thorough
def test_a_lemma_of_ones_own_is_checked_and_shown_without_what_it_does_not_use(tmp_path):
    (tmp_path / "claims_mine.py").write_text(LEMMA)
    unused = (*PAPERS, "scipy", "equinox", "attlas.site.atlas")
    for asked, most in (("0", MODULES_FOR_A_LEMMA), ("1", MODULES_FOR_A_SEARCH)):
        arguments = ("check", "claims_mine.py", "--challenge", asked)
        code, said, modules = imports(tmp_path, *arguments, hidden=hidden_extras())
        assert (code, said) == (0, "")
        assert below(modules, *unused) == []
        assert len(below(modules, "attlas")) <= most
    code, said, modules = imports(tmp_path, "report", "claims_mine.py")
    assert (code, said) == (0, "")
    assert below(modules, *PAPERS, "attlas.transformers", "attlas.models", "attlas.audit") == []


@pytest.mark.parametrize(
    ("asked", "most"), [(("--challenge", "0"), FILES_FOR_A_LEMMA), ((), FILES_FOR_A_SEARCH)]
)
def test_a_check_of_ones_own_lemma_calls_functions_of_few_files(tmp_path, asked, most):
    """Functions and classes, counted by a profile; the bodies of modules do not count."""
    (tmp_path / "claims_mine.py").write_text(LEMMA)
    done = subprocess.run(
        [sys.executable, "-c", ENTERED, "check", "claims_mine.py", *asked],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    shown, _, files = done.stdout.partition("\nENTERED\n")
    assert "claims_mine/triangle  own: new    SUPPORTED" in shown
    assert {"verify/check.py", "cli/check.py"} < set(files.split())
    assert len(files.split()) <= most


@pytest.mark.thorough
def test_a_run_of_one_experiment_imports_no_other(tmp_path):
    code, said, modules = imports(tmp_path, "run", "direction", "--scale", "smoke")
    assert code == 0, said
    found = [m for m in modules if m.startswith(PAPERS) and ".experiments." in m]
    assert found == ["julistiono2024optimizing.experiments.direction"]
    # The answer is read from an xarray.Dataset; xarray imports dask.array where dask is installed.
    assert below(modules, "distributed", "matplotlib") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "hidden", "line", "extra"),
    [
        (
            ("report",),
            "matplotlib",
            "`attlas report` needs matplotlib",
            "site",
        ),
        (
            ("explore",),
            "jinja2",
            "`attlas explore` needs jinja2",
            "site",
        ),
        (
            ("list", "experiments"),
            "xarray",
            "`attlas list` needs xarray",
            "experiments",
        ),
        (
            ("audit", "m"),
            "xarray",
            "`attlas audit` needs xarray",
            "audit",
        ),
        (
            ("run", "direction"),
            "xarray",
            "`attlas run` needs xarray",
            "experiments",
        ),
        (
            ("check", "lemma-12", "--on", "dask"),
            "dask,distributed",
            "`attlas check` needs dask",
            "cluster",
        ),
    ],
)
def test_a_command_without_its_extra_is_one_line_with_exit_code_two(
    tmp_path, arguments, hidden, line, extra
):
    code, said, _ = imports(tmp_path, *arguments, hidden=hidden)
    assert (code, said) == (
        2,
        f"attlas: {line}: pip install '.[{extra}]' in a clone of attlas\n",
    )


def test_a_report_without_its_extra_imports_nothing_before_it_says_so(tmp_path):
    code, said, modules = imports(tmp_path, "report", hidden="xarray")
    assert (code, said) == (
        2,
        "attlas: `attlas report` needs xarray: pip install '.[site]' in a clone of attlas\n",
    )
    assert below(modules, "jax", "numpy", "jinja2") == []


LISTING = """
import sys
from attlas.experiments.find import find_experiments
from attlas.verify.registry import find_claims
assert find_claims(()) and find_experiments()
print(sorted({"scipy.stats", "sklearn", "matplotlib.pyplot", "torch"} & sys.modules.keys()))
"""


@pytest.mark.thorough  # it imports all papers, as each process of `make atlas` does
def test_listing_claims_and_experiments_imports_nothing_that_few_of_them_use():
    listed = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.strip() == "[]"
