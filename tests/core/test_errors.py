"""A missing optional dependency is one line that names its extra."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from attlas.core.errors import UserError, extra_needed, extras, missing_extra

ROOT = Path(__file__).parents[2]


def test_the_line_names_what_needs_it_what_is_missing_and_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with (
        pytest.raises(UserError, match=r"^`attlas report` needs matplotlib: pip install ") as said,
        extra_needed("`attlas report`", "site"),
    ):
        import matplotlib.pyplot  # noqa: F401
    assert str(said.value).endswith("pip install '.[site]' in a clone of attlas")


@pytest.mark.parametrize(
    ("module", "extra", "chosen"),
    [
        ("dask.array", "experiments", "cluster"),
        ("xarray", "experiments", "experiments"),
        ("pandas", "", "site"),
    ],
)
def test_an_extra_without_the_package_gives_way_to_the_smallest_that_has_it(
    monkeypatch, module, extra, chosen
):
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    line = missing_extra(ModuleNotFoundError(name=module), "this", extra)
    assert line.endswith(f"pip install '.[{chosen}]' in a clone of attlas")


def test_errors_of_other_modules_and_of_installed_packages_pass():
    assert missing_extra(ModuleNotFoundError(name="no_such_package"), "this") == ""
    assert missing_extra(ModuleNotFoundError(name="pandas.no_such_module"), "this") == ""
    with pytest.raises(ModuleNotFoundError), extra_needed("this"):
        import no_such_package  # noqa: F401  # pyright: ignore[reportMissingImports]


def test_extras_are_those_of_the_project_and_all_has_those_of_every_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = extras()
    assert known.keys() == project["optional-dependencies"].keys()
    commands = ("audit", "cluster", "experiments", "site")
    assert known["all"] == frozenset().union(*(known[name] for name in commands))


def test_an_extra_is_installed_from_a_clone_wherever_it_is_named():
    """attlas is in no index: `pip install 'attlas[site]'` would find nothing, or another's."""
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    texts += [*(ROOT / "docs" / "choose").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    named = [
        f"{text.relative_to(ROOT)}: {line.strip()}"
        for text in texts
        for line in text.read_text(encoding="utf-8").splitlines()
        if re.search(r"pip install ['\"]?attlas\b", line)
    ]
    assert named == []
