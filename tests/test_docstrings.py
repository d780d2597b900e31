"""The rule of docstrings, in place of rules that demand a line for every argument and result.

A summary is one line, arrays have shapes, no entry repeats its name, and functions have examples.
ruff finds an entry that names no argument; `test_house` sees that every example is executed.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attlas"
PAPERS = ROOT / "papers"
LIBRARY = "library"
FILES = [*sorted(SOURCE.rglob("*.py")), *sorted(PAPERS.glob(f"*/{LIBRARY}/**/*.py"))]
MATHEMATICS = {
    *(
        "bounds",
        "certificates",
        "claims",
        "core",
        "data",
        "display",
        "kernels",
        "losses",
        "measures",
        "models",
    ),
    *("norms", "optim", "solvers", "torch", "training", LIBRARY),
}
"""Every public function of these packages has an example, and of the library of a paper."""
MACHINERY = {
    *(
        "_files",
        "_jax",
        "audit",
        "capture",
        "certificates",
        "cli",
        "experiments",
        "projects",
        "server",
    ),
    *("site", "testing", "transformers", "verify"),
}
"""Of these packages those functions have one that take and return plain values: the others need a
file, a model or a page."""
_CONFTEST = (ROOT / "conftest.py").read_text(encoding="utf-8")
SHORT = ast.literal_eval(re.findall(r"^SHORT = (.*)$", _CONFTEST, re.MULTILINE)[0])
"""Folders of a paper's library that train nothing: examples elsewhere are thorough, and are not
demanded."""
WITHOUT_EXAMPLE = {
    "src/attlas/data/imdb.py:load_imdb": "reads a data set that is not in the repository",
    "src/attlas/data/mnist.py:load_mnist": "reads a data set that is not in the repository",
    "src/attlas/data/portuguese_english.py:load_portuguese_english": "likewise",
    "src/attlas/data/stories.py:load_stories": "likewise",
    "src/attlas/data/sources.py:fetch": "downloads a data set",
    "src/attlas/certificates/parquet_file.py:parquet_columns": "reads by an extra; see its test",
    "src/attlas/training/programs.py:train_in_pieces": "compiles four programs; see its test",
}
"""Functions of mathematics whose example would need a file, the network or seconds, and why."""
PLAIN = {
    *("int", "float", "str", "bool", "bytes", "complex", "None", "Literal"),
    *("list", "tuple", "dict", "set", "frozenset", "Sequence", "Iterable", "Iterator", "Mapping"),
    *("Array", "np.ndarray", "ArrayInput", "DataArray", "Interval"),
    *("Float", "Int", "Bool", "Key", "Complex", "Shaped", "Num"),
}
"""What an annotation of plain values consists of."""
ARRAYS = {"Array", "np.ndarray", "ArrayInput"}
SHAPE = re.compile(
    r"\[(?=[^\]]*[A-Za-z])[\w., +*-]+\]|\((\w+|\.{3}),( \*?\w+,?)*( - 1)?\)"
    r"|\bany shape\b|\bshape \(|\baxes\b|\b(scalar|vector|matrix|(entry|element)wise)\b"
)
"""How a docstring says the shape of an array that the signature leaves open."""
IDLE = (
    "a an the of its their this that them and or in one per each for by to at on with is are be it "
    "array value argument result number list given other least none where"
)
"""Words that add nothing to a name."""
_SECTION = re.compile(r"^(Args|Returns):\n((?: {4}.*\n?)+)", re.MULTILINE)
_SIGN = re.compile(r"[`$\"\d\[(|<>=+]")
"""What formulas, code and ranges have."""


class Public(NamedTuple):
    """A public function of a module, with the package that it belongs to."""

    path: Path
    package: str
    function: ast.FunctionDef

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.function.name}"

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.function) or ""


def package_of(path: Path) -> str:
    """Package of the instrument, or `library` for the library of a paper."""
    return LIBRARY if PAPERS in path.parents else path.relative_to(SOURCE).parts[0]


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def teardown_module() -> None:
    """The trees of all files take hundreds of megabytes."""
    public_functions.cache_clear()
    tree.cache_clear()


@cache
def public_functions() -> tuple[Public, ...]:
    """Functions at the top level of public modules, but for fixtures of tests."""
    return tuple(
        Public(path, package_of(path), node)
        for path in FILES
        if not path.stem.startswith("_") or path.stem == "__init__"
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if not any("fixture" in ast.unparse(each) for each in node.decorator_list)
    )


def annotations(function: ast.FunctionDef) -> Iterator[str]:
    """The annotations of the arguments and of the result; "" where there is none."""
    of = function.args
    for argument in (*of.posonlyargs, *of.args, of.vararg, *of.kwonlyargs, of.kwarg):
        if argument is not None:
            yield ast.unparse(argument.annotation) if argument.annotation else ""
    yield ast.unparse(function.returns) if function.returns else ""


def is_plain(annotation: str) -> bool:
    """Whether an annotation names numbers, texts, arrays and containers of them alone."""
    names = re.findall(r"[A-Za-z_][\w.]*", re.sub(r"'[^']*'", "", annotation))
    return bool(names) and all(name in PLAIN or name.split(".")[-1] in PLAIN for name in names)


def takes_and_returns_plain_values(function: ast.FunctionDef) -> bool:
    *arguments, result = annotations(function)
    return bool(arguments) and result != "None" and all(map(is_plain, (*arguments, result)))


def wants_example(public: Public) -> bool:
    """Whether the rule demands an example of a function."""
    if public.package == LIBRARY:
        return public.path.relative_to(PAPERS).parts[2] in SHORT
    return public.package in MATHEMATICS or takes_and_returns_plain_values(public.function)


def test_every_package_is_mathematics_or_machinery():
    packages = {p.package for p in public_functions()} | {LIBRARY}
    assert packages - MATHEMATICS - MACHINERY == set()


def test_summaries_are_one_line():
    """Of public functions, classes and methods; the docstring of a claim is its statement."""
    untidy = [
        f"{path.relative_to(ROOT).as_posix()}:{node.name}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        if (docstring := ast.get_docstring(node)) is not None
        if not re.match(r".*[.?!](\n\n|$)", docstring)
    ]
    assert untidy == []


def test_public_functions_have_examples():
    bare = {p.name for p in public_functions() if wants_example(p) and ">>> " not in p.docstring}
    assert sorted(bare ^ WITHOUT_EXAMPLE.keys()) == []


def is_open(annotation: ast.expr | None) -> bool:
    """Whether an annotation is an array without a shape.

    The arrays of a collection have one each, and a union has the shape of its other members.
    """
    if isinstance(annotation, ast.BinOp):
        members = [annotation.left, annotation.right]
        return all(is_open(each) or ast.unparse(each) == "None" for each in members)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "tuple":
        members = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
        return any(map(is_open, members))
    return annotation is not None and ast.unparse(annotation) in ARRAYS


def test_arrays_have_shapes():
    """In the signature, or in words."""
    silent = [
        p.name
        for p in public_functions()
        if any(
            is_open(ast.parse(each or "None", mode="eval").body) for each in annotations(p.function)
        )
        and not SHAPE.search(p.docstring.split("Examples:")[0])
    ]
    assert silent == []


def stems(text: str) -> set[str]:
    """The words of a text or of a name without plural; a letter is a symbol and keeps its case."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    words = {word if len(word) == 1 else word.lower() for word in re.findall("[A-Za-z]+", apart)}
    return {re.sub("e?s$", "", word) if len(word) > 3 else word for word in words}


def entries(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """What is said of each argument and of the result, and what name, type and summary say."""
    docstring = ast.get_docstring(function) or ""
    types = {
        each.arg: ast.unparse(each.annotation) if each.annotation else ""
        for each in ast.walk(function.args)
        if isinstance(each, ast.arg)
    }
    returns = ast.unparse(function.returns) if function.returns else ""
    for heading, body in _SECTION.findall(docstring):
        if heading == "Returns":
            yield body, f"{function.name} {returns} {docstring.splitlines()[0]}"
            continue
        for entry in re.split(r"\n(?! {5})", body.rstrip("\n")):
            name, _, text = entry.strip(" *").partition(": ")
            yield text, f"{name} {types.get(name, '')}"


def test_no_entry_repeats_its_name():
    """Nor does a result repeat the summary: each says more than the signature."""
    idle = [
        f"{path.relative_to(ROOT).as_posix()}:{node.name}: {text.strip()}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        for text, known in entries(node)
        if not _SIGN.search(text) and stems(text) <= stems(known) | stems(IDLE)
    ]
    assert idle == []
