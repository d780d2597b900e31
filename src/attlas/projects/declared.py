"""Claims, stubs and experiments as the sources of a project declare them; nothing is executed.

Commands that only list read this. They know the names of attlas however a file imports them,
`functools.partial` of a decorator, constants of a module, and what a file imports from others of
its project. A claim that code makes in another way, such as a loop, shows only when the code runs:
it is named as such.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attlas.projects.places import Place, module_file, on_path, read_place
from attlas.projects.source import dotted_name, is_of_project, syntax_trees

KINDS = (
    *("identity", "inequality", "existence", "limit", "rate", "probability", "expectation"),
    *("erratum", "computed"),
)
"""Decorators that make claims, as `attlas.claims.statement` defines them."""
TODO, EXPERIMENT = "todo", "Experiment"
_MAKERS = (*KINDS, TODO, EXPERIMENT)
_DEEPEST = 20


@dataclass(frozen=True)
class Declaration:
    """One claim, stub or experiment, as its source says it.

    Attributes:
        maker: one of `KINDS`, `TODO` or `EXPERIMENT`.
        function: name of the decorated function, or of the variable of an experiment.
        arguments: the positional arguments, as they are written.
        keywords: the arguments that are written with a name.
        docstring: of the function; of the module for an experiment.
        place: file and line of the definition.
        module: dotted name of its module.
    """

    maker: str
    function: str
    arguments: tuple[ast.expr, ...]
    keywords: Mapping[str, ast.expr]
    docstring: str
    place: tuple[str, int]
    module: str

    def argument(self, name: str, position: int = -1) -> ast.expr | None:
        """An argument by its name, else by its position; None if it is not written."""
        value = self.keywords.get(name)
        if value is None and 0 <= position < len(self.arguments):
            value = self.arguments[position]
        return value

    def text(self, name: str, position: int = -1) -> str | None:
        """An argument that is a text, or the last name of a member such as `Source.FOUND`.

        Returns:
            The text; empty if the argument is not written, None if only running computes it.
        """
        value = self.argument(name, position)
        if value is None:
            return ""
        if isinstance(value, ast.Attribute):
            return value.attr
        if isinstance(value, ast.Name) and value.id == "__doc__":
            return self.docstring
        if isinstance(value, ast.Constant):
            return value.value if isinstance(value.value, str) else None
        return None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """An argument that is a text or several, likewise."""
        value = self.argument(name)
        if isinstance(value, ast.Tuple | ast.List):
            texts = [e.value for e in value.elts if isinstance(e, ast.Constant)]
            return tuple(map(str, texts)) if len(texts) == len(value.elts) else None
        text = self.text(name)
        return None if text is None else (text,) if text else ()


@dataclass(frozen=True)
class Declarations:
    """What a place declares.

    Attributes:
        claims: claims in order of files and lines.
        stubs: stubs of statements in the same order.
        experiments: experiments in the same order.
        unread: files and lines whose code makes claims in a way that shows only when it runs.
    """

    claims: tuple[Declaration, ...] = ()
    stubs: tuple[Declaration, ...] = ()
    experiments: tuple[Declaration, ...] = ()
    unread: tuple[tuple[str, int], ...] = ()


def declared(places: Sequence[Place | str]) -> Declarations:
    """The claims, stubs and experiments that the sources of some places declare.

    Args:
        places: files, folders, notebooks and modules, each also with `:NAME`.

    Raises:
        UserError: if a place does not exist, or a notebook has no tagged cell.

    Examples:
        >>> declared(["json.decoder"]).claims
        ()
    """
    sources: dict[Path, _Source] = {}
    by_place: dict[tuple[str, int], Declaration] = {}
    unread: dict[tuple[str, int], None] = {}
    for text in places:
        place = read_place(text) if isinstance(text, str) else text
        for path in _files(place):
            source = _source(path, sources)
            for name, declaration in source.objects().items():
                if not place.name or name == place.name:
                    by_place.setdefault(declaration.place, declaration)
            unread |= dict.fromkeys(() if place.name else source.unread())
    objects = by_place.values()
    return Declarations(
        tuple(d for d in objects if d.maker in KINDS),
        tuple(d for d in objects if d.maker == TODO),
        tuple(d for d in objects if d.maker == EXPERIMENT),
        tuple(unread),
    )


def _files(place: Place) -> tuple[Path, ...]:
    """The source files of a place; of a package, all of its modules."""
    if not place.module:
        return place.files
    file = module_file(place.module)
    if file is None or (file.is_file() and file.stem != "__init__"):
        return () if file is None else (file,)
    folder = file if file.is_dir() else file.parent
    return tuple(path for path in sorted(folder.rglob("*.py")) if path.stem != "__main__")


@dataclass(frozen=True)
class _Maker:
    """A decorator or constructor of attlas, with the arguments that are fixed already."""

    name: str
    arguments: tuple[ast.expr, ...] = ()
    keywords: Mapping[str, ast.expr] = field(default_factory=dict)

    def called(
        self, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword], source: "_Source"
    ) -> "_Maker":
        """The same with further arguments, written in a file whose constants they may name."""
        positional = (*self.arguments, *map(source.constant, arguments))
        named = {k.arg: source.constant(k.value) for k in keywords if k.arg is not None}
        return _Maker(self.name, positional, {**self.keywords, **named})


class _Source:
    """One file: its names, and what it declares at its top level."""

    def __init__(self, path: Path, others: "dict[Path, _Source]"):
        self.path, self._others = path, others
        self.module, folder = dotted_name(path)
        on_path(folder)  # as where the file runs: an import beside it is of its project
        self._trees = syntax_trees(path)
        self.docstring = next((ast.get_docstring(t) or "" for _, t in self._trees), "")
        self._constants: dict[str, ast.expr] = {}
        self._objects: dict[str, Declaration] | None = None
        self._returned: dict[str, ast.expr] = {}
        self._imports: dict[str, str] = {}
        for statement in (s for _, tree in self._trees for s in tree.body):
            self._remember(statement)
        self._read: set[int] = set()

    def _remember(self, statement: ast.stmt) -> None:
        last = statement.body[-1] if isinstance(statement, ast.FunctionDef) else None
        if isinstance(last, ast.Return) and isinstance(statement, ast.FunctionDef) and last.value:
            self._returned[statement.name] = last.value
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._constants[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is not None:
                self._constants[statement.target.id] = statement.value
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._imports[name] = alias.name if alias.asname else name
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                self._imports[alias.asname or alias.name] = f"{self._base(statement)}.{alias.name}"

    def _base(self, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        names = self.module.split(".")
        kept_names = len(names) - statement.level + (self.path.stem == "__init__")
        return ".".join([*names[:kept_names], *([statement.module] if statement.module else [])])

    def constant(self, value: ast.expr) -> ast.expr:
        """What an expression is, where it is a name that the file assigns."""
        for _ in range(_DEEPEST):
            if not isinstance(value, ast.Name) or value.id not in self._constants:
                break
            value = self._constants[value.id]
        return value

    def objects(self) -> dict[str, Declaration]:
        """Declarations by the names that the file gives them, those that it imports among them."""
        if self._objects is not None:
            return self._objects
        objects = self._objects = {}  # files may import each other
        for name, dotted in self._imports.items():
            source = self._imported(dotted)
            theirs = {} if source is None else source.objects()
            if name == "*":
                objects |= theirs
            elif (last := dotted.rpartition(".")[2]) in theirs:
                objects[name] = theirs[last]
        for where, tree in self._trees:
            for statement in tree.body:
                if declaration := self._declaration(where, statement):
                    objects[declaration.function] = declaration
        return objects

    def _imported(self, dotted: str) -> "_Source | None":
        """The file of the project from which a name is imported."""
        base = dotted.rpartition(".")[0]
        if not base or base.partition(".")[0] == "attlas":
            return None
        file = module_file(base)
        if file is None or file == self.path or file.suffix != ".py":
            return None
        is_beside = base.partition(".")[0] == self.module.partition(".")[0]
        return _source(file, self._others) if is_of_project(file, is_beside) else None

    def _declaration(self, where: str, statement: ast.stmt) -> Declaration | None:
        if isinstance(statement, ast.FunctionDef):
            calls = [c for c in statement.decorator_list if isinstance(c, ast.Call)]
            name, docstring = statement.name, ast.get_docstring(statement) or ""
            line = min((c.lineno for c in statement.decorator_list), default=statement.lineno)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            calls = [statement.value] if isinstance(statement.value, ast.Call) else []
            name = target.id if isinstance(target, ast.Name) else ""
            docstring, line = self.docstring, statement.lineno
        else:
            return None
        for call in calls:
            maker = self._maker(call.func)
            is_function = isinstance(statement, ast.FunctionDef)
            if name and maker and is_function is (maker.name != EXPERIMENT):
                made = maker.called(call.args, call.keywords, self)
                self._read |= {id(node) for node in ast.walk(call.func)}
                return Declaration(
                    *(made.name, name, made.arguments, made.keywords, docstring),
                    *((where, line), self.module),
                )
        return None

    def _maker(self, value: ast.expr, depth: int = 0) -> _Maker | None:
        """What an expression makes, if it is a name of attlas or a partial call of one."""
        dotted = self._dotted(value)
        last = dotted.rpartition(".")[2]
        if self._is_of_attlas(value):
            return _Maker(last) if last in _MAKERS else None
        if depth > _DEEPEST:
            return None
        if isinstance(value, ast.Name) and value.id in self._constants:
            return self._maker(self._constants[value.id], depth + 1)
        if isinstance(value, ast.Call) and self._dotted(value.func) == "functools.partial":
            maker = self._maker(value.args[0], depth + 1) if value.args else None
            if maker is None:
                return None
            self._read |= {id(node) for node in ast.walk(value.args[0])}
            return maker.called(value.args[1:], value.keywords, self)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            # A function that ends in such an expression: what its parameters are stays unknown.
            returned = self._returned.get(value.func.id)
            if returned is not None:
                return self._maker(returned, depth + 1)
        called = value.func if isinstance(value, ast.Call) else value
        dotted = self._dotted(called)
        source = self._imported(dotted) if dotted else None
        if source is None:
            return None
        name = ast.Name(dotted.rpartition(".")[2])
        is_call = isinstance(value, ast.Call)
        written = ast.Call(name, value.args, value.keywords) if is_call else name
        return source._maker(written, depth + 1)

    def _dotted(self, value: ast.expr) -> str:
        """The full name of an expression that an import gives; empty for others."""
        if isinstance(value, ast.Attribute):
            base = self._dotted(value.value)
            return f"{base}.{value.attr}" if base else ""
        if not isinstance(value, ast.Name):
            return ""
        if value.id not in self._imports and value.id in _MAKERS:
            return f"{self._imports['*'].removesuffix('*')}{value.id}" if self._star() else ""
        return self._imports.get(value.id, "")

    def _is_of_attlas(self, value: ast.expr) -> bool:
        return self._dotted(value).partition(".")[0] == "attlas"

    def _star(self) -> bool:
        return self._imports.get("*", "").partition(".")[0] == "attlas"

    def unread(self) -> Iterator[tuple[str, int]]:
        """The lines that use a decorator of claims in another way, or call `Experiment` so."""
        self.objects()
        for value in (*self._constants.values(), *self._returned.values()):
            if self._maker(value):
                self._read |= {id(node) for node in ast.walk(value)}
        for where, tree in self._trees:
            called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Name | ast.Attribute) or id(node) in self._read:
                    continue
                maker = self._maker(node) if isinstance(node.ctx, ast.Load) else None
                is_call = maker and maker.name == EXPERIMENT and id(node) in called
                if maker and (is_call or maker.name in KINDS):
                    yield where, node.lineno


def _source(path: Path, sources: dict[Path, _Source]) -> _Source:
    if path not in sources:
        sources[path] = _Source(path, sources)
    return sources[path]
