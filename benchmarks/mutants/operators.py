"""Wrong formulas made from the syntax tree of a function, by operators.

A literal is doubled or shifted by one, an exponent, an index or an axis shifted, a sign flipped,
a reduction exchanged, a term of a sum or a factor of a product dropped, a root dropped, a strict
comparison made weak or the other way round. A mutant is named by its file, function, operator and
the number of its node in the tree of the function, so that neither a renamed variable nor a line
that is wrapped anew changes it. Left alone are annotations, docstrings and messages, the defaults
of arguments, which are choices and no formulas, and the checks of arguments: what raises, asserts,
or only calls a function that does.
"""

import ast
import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "bounds", "norms", "losses", "kernels", "solvers", "optim", "measures", "models", "training",
    "data",
)  # fmt: skip
FOLDERS = [ROOT / "src" / "attlas" / name for name in PACKAGES]
"""Packages of the instrument that hold formulas; `library` of every paper is added."""

EXCHANGED = {
    "max": "min", "min": "max", "sum": "mean", "mean": "sum", "maximum": "minimum",
    "minimum": "maximum", "argmax": "argmin", "argmin": "argmax", "all": "any", "any": "all",
    "amax": "amin", "amin": "amax", "ceil": "floor", "floor": "ceil", "prod": "sum",
}  # fmt: skip
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_CHECK = re.compile(r"_?(require|check|validate|refuse|warn)")
_NOT_NUMBERS = {"None", "str", "bool", "Never", "NoReturn", "Path"}

Function = ast.FunctionDef


class Mutant(NamedTuple):
    """A function with one thing wrong.

    Attributes:
        file: path in the repository.
        function: qualified name.
        operator: what is done.
        position: to which node, by its number in the function's tree.
    """

    file: str
    function: str
    operator: str
    position: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.file}:{self.function}:{self.operator}@{self.position}"

    @property
    def module(self) -> str:
        """Dotted name of the module that is changed."""
        return module_name(ROOT / self.file)

    def changed(self) -> Function:
        """The function's tree with the change, without decorators and annotations.

        Returns:
            The definition.

        Raises:
            LookupError: if the function has no such node any more.
        """
        function = _plain(functions(ROOT / self.file)[self.function])
        for place in _places(function):
            for operator, change in _changes(place):
                if (place.number, operator) == (self.position, self.operator):
                    place.replace(change())
                    return ast.fix_missing_locations(function)
        raise LookupError(f"there is no mutant {self.name}: run the mutants of its file again")

    def line(self) -> str:
        """The statement that is changed, as it becomes, for the reader of the table."""
        before = ast.unparse(_plain(functions(ROOT / self.file)[self.function])).splitlines()
        after = ast.unparse(self.changed()).splitlines()
        different = [b for a, b in zip(before, after, strict=False) if a != b]
        return different[0].strip()[:160] if different else ""


class Place(NamedTuple):
    """A node that may be changed: where it stands and what it is to its parent."""

    number: int
    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    role: str

    def replace(self, node: ast.AST) -> None:
        """Put another node in its place."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def module_name(file: Path) -> str:
    """Dotted name of a source file of the instrument or of a paper."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts[1:])


def sources() -> list[Path]:
    """The files whose functions are changed."""
    folders = [*FOLDERS, *sorted((ROOT / "papers").glob("*/library"))]
    files = (file for folder in folders for file in sorted(folder.rglob("*.py")))
    return [file for file in files if file.name != "__init__.py"]


def mutants_of(file: Path) -> list[Mutant]:
    """All mutants of the functions of a file that return numbers, or what holds numbers."""
    name = file.relative_to(ROOT).as_posix()
    return [
        Mutant(name, function, operator, place.number)
        for function, node in functions(file).items()
        if _returns_numbers(node)
        for place in _places(_plain(node))
        for operator, _ in _changes(place)
    ]


def functions(file: Path) -> dict[str, Function]:
    """The functions of a module and the methods of its classes by qualified name."""
    found = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = (inner for inner in node.body if isinstance(inner, Function))
            found |= {f"{node.name}.{method.name}": method for method in methods}
    return found


def digest(function: Function) -> str:
    """A hash of a function's tree that does not see how local variables are called."""
    numbers: dict[str, int] = {}
    tree = _plain(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = str(numbers.setdefault(node.id, len(numbers)))
        elif isinstance(node, ast.arg):
            node.arg = str(numbers.setdefault(node.arg, len(numbers)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    # Unparsed, since the fields of a dumped tree depend on the version of Python.
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def _returns_numbers(function: Function) -> bool:
    if function.returns is None:
        return function.name.startswith("_") and not function.name.startswith("__")
    return ast.unparse(function.returns) not in _NOT_NUMBERS


def _plain(function: Function) -> Function:
    """A copy without decorators, annotations and docstring."""
    function = copy.deepcopy(function)
    function.decorator_list, function.returns = [], None
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, Function):
            node.returns = None
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return function


def _places(function: Function) -> Iterator[Place]:
    counter = iter(range(1_000_000))

    def visit(parent: ast.AST, role: str) -> Iterator[Place]:
        for field, value in ast.iter_fields(parent):
            many = isinstance(value, list)
            for index, node in enumerate(value if many else [value]):
                if not isinstance(node, ast.AST):
                    continue
                number = next(counter)
                skipped = role == "skipped" or isinstance(parent, ast.arguments)
                own = "skipped" if skipped else _role(parent, field, node, role)
                if own != "skipped":
                    yield Place(number, parent, field, index if many else None, node, own)
                yield from visit(node, own)

    yield from visit(function, "value")


def _role(parent: ast.AST, field: str, node: ast.AST, role: str) -> str:
    """What a node is to its parent."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _checks_arguments(node):
        return "skipped"
    if isinstance(parent, ast.UnaryOp | ast.Slice | ast.Tuple) and role in ("index", "axis"):
        return role
    if isinstance(parent, ast.keyword):
        return "axis" if parent.arg in ("axis", "in_axes", "axes") else "value"
    if isinstance(parent, ast.Subscript) and field == "slice":
        return "index"
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and field == "right":
        return "exponent"
    return "value"


def _checks_arguments(node: ast.AST) -> bool:
    """Whether a statement raises under a condition, or only calls a function that may."""
    if isinstance(node, ast.If):
        return isinstance(node.body[-1], ast.Raise)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return bool(_CHECK.match(_called(node.value)))
    return False


def _called(node: ast.Call) -> str:
    """The last part of the name of the function called."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


Change = tuple[str, Callable[[], ast.AST]]


def _changes(place: Place) -> Iterator[Change]:
    """The operators that apply to a node, and what each puts in its place."""
    node, role = place.node, place.role
    if isinstance(node, ast.Constant):
        yield from _of_literal(node, place)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if role in ("index", "axis"):
            shifted = ast.BinOp(node, ast.Sub(), ast.Constant(1))
            yield f"{role} shifted", lambda: shifted
        else:
            yield "sign flipped", lambda: node.operand
    elif isinstance(node, ast.BinOp) and not (_is_sequence(node.left) or _is_sequence(node.right)):
        yield from _of_operation(node)
    elif isinstance(node, ast.AugAssign):
        swapped = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        if other := swapped.get(type(node.op)):
            yield "operation inverted", lambda: ast.AugAssign(node.target, other(), node.value)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            if other := COMPARISONS.get(type(operator)):
                ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                changed = ast.Compare(node.left, ops, node.comparators)
                yield f"comparison {k}", lambda changed=changed: changed
    if role == "exponent" and isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
        yield "exponent shifted", lambda: ast.BinOp(node, ast.Add(), ast.Constant(1))


def _of_literal(node: ast.Constant, place: Place) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    shifted = ast.Constant(value + 1)
    if place.role in ("index", "axis"):
        # The sign of a negative index is a node of its own, which is the one that is shifted.
        if not isinstance(place.parent, ast.UnaryOp):
            yield f"{place.role} shifted", lambda: shifted
        return
    if place.role == "exponent":
        yield "exponent shifted", lambda: shifted
        return
    yield "literal shifted", lambda: shifted
    if value not in (0, 1):
        yield "literal doubled", lambda: ast.Constant(2 * value)


def _of_operation(node: ast.BinOp) -> Iterator[Change]:
    left, right = node.left, node.right
    negative = ast.UnaryOp(ast.USub(), right)
    if isinstance(node.op, ast.Add | ast.Sub):
        minus = isinstance(node.op, ast.Sub)
        other = ast.Add() if minus else ast.Sub()
        yield "sign flipped", lambda: ast.BinOp(left, other, right)
        yield "first term dropped", lambda: negative if minus else right
        yield "second term dropped", lambda: left
    elif isinstance(node.op, ast.Mult):
        yield "first factor dropped", lambda: right
        yield "second factor dropped", lambda: left
    elif isinstance(node.op, ast.Div):
        if not (isinstance(left, ast.Constant) and left.value == 1):
            yield "numerator dropped", lambda: ast.BinOp(ast.Constant(1), ast.Div(), right)
        yield "divisor dropped", lambda: left


def _of_call(node: ast.Call) -> Iterator[Change]:
    name = _called(node)
    if name in EXCHANGED:
        function = copy.deepcopy(node.func)
        if isinstance(function, ast.Attribute):
            function.attr = EXCHANGED[name]
        elif isinstance(function, ast.Name) and EXCHANGED[name] in ("max", "min", "all", "any"):
            function.id = EXCHANGED[name]
        else:
            return
        yield f"{name} exchanged", lambda: ast.Call(function, node.args, node.keywords)
    elif name == "sqrt" and len(node.args) == 1:
        yield "root dropped", lambda: node.args[0]


def _is_sequence(node: ast.AST) -> bool:
    """Whether an operand is a text, a list or a tuple: it is joined or repeated."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.List | ast.Tuple | ast.JoinedStr | ast.ListComp)
