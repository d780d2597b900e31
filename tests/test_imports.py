"""What modules of the instrument import and name: no circle, and kinds of claims in one place."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
SHOWN = ("__repr__", "_repr_html_")
"""Methods that look up the text or the page of an object when it is shown."""
# The kinds, and the decorators that make claims of them.
OF_KINDS = ("attlas.claims.kinds.", "attlas.claims.statement", "attlas.claims.worst_case")


@cache
def modules() -> dict[str, ast.Module]:
    """Every module by name; the `__init__.py` of a folder has no code, or a list of lazy names."""
    paths = [p for p in sorted((SOURCE / "attlas").rglob("*.py")) if p.name != "__init__.py"]
    names = {p: ".".join(p.relative_to(SOURCE).with_suffix("").parts) for p in paths}
    return {name: ast.parse(path.read_text("utf-8")) for path, name in names.items()}


def teardown_module() -> None:
    """The trees of all modules take hundreds of megabytes."""
    modules.cache_clear()


def imports(node: ast.AST) -> Iterator[str]:
    """Dotted names that are imported anywhere inside a node, also under TYPE_CHECKING."""
    if isinstance(node, ast.FunctionDef) and node.name in SHOWN:
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            yield from (node.module, f"{node.module}.{alias.name}")
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from imports(child)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of a graph, empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_in_a_circle():
    trees = modules()
    graph = {name: {*imports(tree)} & (trees.keys() - {name}) for name, tree in trees.items()}
    assert circle({**graph, "a": {"b"}, "b": {"a"}}) != []
    assert circle(graph) == []


def test_kinds_of_claims_are_named_where_they_are_defined():
    """Elsewhere a module asks the object of the kind: a new kind opens four files."""
    named = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Kind"
    }
    assert [name for name in sorted(named) if not name.startswith(OF_KINDS)] == []
