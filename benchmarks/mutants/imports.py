"""Which unit tests and which claims see a module: the static graph of imports."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from benchmarks.mutants.operators import PACKAGES, ROOT

PAPERS = ROOT / "papers"


def module_name(file: Path) -> str:
    """Dotted name of a file; a unit test is called by its path, as nothing imports it."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "tests" or "tests" in parts[2:3]:
        return file.relative_to(ROOT).as_posix()
    return ".".join(parts[1:]).removesuffix(".__init__")


@cache
def importers() -> Mapping[str, frozenset[str]]:
    """For each module those that import it, anywhere in their text."""
    files = [f for name in ("src", "papers", "tests") for f in (ROOT / name).rglob("*.py")]
    known = {module_name(file) for file in files}
    found = defaultdict(set)
    for file in files:
        name = module_name(file)
        for imported in _imports(ast.parse(file.read_text(encoding="utf-8")), known):
            if imported != name:
                found[imported].add(name)
    return {name: frozenset(users) for name, users in found.items()}


def _imports(tree: ast.AST, known: set[str]) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inside & known) or {node.module}
    return names & known


def users(module: str) -> dict[str, int]:
    """The modules and tests that import a module, by how many imports lie between."""
    distance = {module: 0}
    front = {module}
    while front:
        following = {user for name in front for user in importers().get(name, ())}
        farther = 1 + max(distance.values())
        front = following - distance.keys()
        distance |= dict.fromkeys(front, farther)
    return distance


def unit_tests(file: str, most: int = 8) -> list[str]:
    """The unit tests that are run for a module, the nearest first.

    Args:
        file: path in the repository.
        most: how many of them.

    Returns:
        Paths: the module's own examples, tests of its name, those that import it, and those that
        import what imports it. A mutant that only a farther test would kill counts as alive.
    """
    path = ROOT / file
    tests = [
        (distance, path.stem not in name, name)
        for name, distance in users(module_name(path)).items()
        if name.endswith(".py") and Path(name).stem.startswith("test_") and _is_of_formulas(name)
    ]
    return [file, *(name for _, _, name in sorted(tests)[:most])]


def _is_of_formulas(test: str) -> bool:
    """Whether a test lies in a paper or beside the packages of formulas: no pages, no commands."""
    parts = Path(test).parts
    return parts[0] == "papers" or parts[1] in PACKAGES


def claim_modules_of(file: str) -> list[str]:
    """The modules of papers' claims that import a module, the nearest first."""
    distance = users(module_name(ROOT / file))
    papers = [p.name for p in PAPERS.iterdir() if (p / "__init__.py").exists()]
    claims = [
        (d, name)
        for name, d in distance.items()
        if name.count(".") == 1 and name.partition(".")[0] in papers
    ]
    return [name for _, name in sorted(claims)]
