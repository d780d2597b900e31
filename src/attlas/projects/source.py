"""The source files of a user's module, as far as they belong to its project, and its data."""

import ast
import hashlib
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError
from attlas.projects.places import is_theirs, module_file, users_for
from attlas.projects.project import project_of

PACKAGE = Path(__file__).parents[1]
MOST_BYTES = 256_000_000
_DATA = "data:"
_PARSING = threading.Lock()
"""Held while a source is parsed: Python 3.11 counts the depth of a tree once for all threads."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The attributes of a statement that hold statements, or what holds them."""
_INSTALLED = ("site-packages", "dist-packages")


def package_files(name: str, path: Path) -> dict[str, Path]:
    """The file of a module and those of the modules of its project that it imports.

    Installed packages, Python's library and attlas are excluded, except modules of the same
    package. Imports are read from the sources, those inside functions too; the packages of the
    module are imported with it, whether it names them or not.

    Returns:
        Files by the names of their modules, that of the module first.
    """
    modules: dict[str, Path] = {name: path} | _packages_of(name, path)
    todo = list(modules)
    top = name.partition(".")[0]
    while todo:
        current = todo.pop()
        package = current if modules[current].stem == "__init__" else current.rpartition(".")[0]
        for module in imported(modules[current], package):
            file = None if module in modules else _file_of(module, modules)
            if file is not None and is_of_project(file, module.partition(".")[0] == top):
                modules[module] = file
                todo.append(module)
    return modules


def _packages_of(name: str, path: Path) -> dict[str, Path]:
    """The `__init__.py` of each package that a module lies in, the nearest first."""
    packages: dict[str, Path] = {}
    folder = path.parent.parent if path.stem == "__init__" else path.parent
    while name := name.rpartition(".")[0]:
        file = folder / "__init__.py"
        if file.is_file() and is_of_project(file, same_package=True):
            packages[name] = file
        folder = folder.parent
    return packages


def with_data(files: dict[str, Path]) -> dict[str, Path]:
    """Files of a module with the data that its project declares, as they are now.

    Args:
        files: files by the names of their modules, that of the module first; data among them is
            replaced.

    Returns:
        These, and the files that `data` of `[tool.attlas]` names, by `data:<path>`.

    Raises:
        UserError: if the project's table is wrong, or one of its patterns matches no file.
    """
    modules = {name: path for name, path in files.items() if not name.startswith(_DATA)}
    home = next(iter(modules.values()), None)
    project = None if home is None or home.is_relative_to(PACKAGE) else project_of(home)
    data = {} if project is None else project.data_files()
    for path in data.values():
        if (size := path.stat().st_size) > MOST_BYTES:
            raise UserError(f"{path} has {size} bytes: data of a project has at most {MOST_BYTES}")
    return modules | {f"{_DATA}{name}": path for name, path in data.items()}


def dotted_name(path: Path) -> tuple[str, Path]:
    """The name under which a file is a module, by the `__init__.py` of the folders above it.

    An `__init__.py` of another user than the current one and the file's makes no package: it would
    run when the file is imported.

    Returns:
        Dotted name, and the folder from which it is imported.

    Examples:
        >>> dotted_name(Path(__file__))[0]
        'attlas.projects.source'
    """
    names = [path.stem]
    folder, users = path.parent, users_for(path)
    while (above := folder / "__init__.py").is_file() and is_theirs(above, users):
        names.insert(0, folder.name)
        folder = folder.parent
    if path.stem == "__init__" and len(names) > 1:
        names.pop()
    return ".".join(names), folder


def digest_of(files: dict[str, Path]) -> str:
    """The sha256 of files by name and content, whichever folder they are in; 64 digits.

    A file that is gone or cannot be read counts by its absence.
    """
    digest = hashlib.sha256()
    main = next(iter(files), "")
    for name in sorted(files, key=lambda name: (name != main, name)):
        # The first is the module itself, which may be known by its file or by a dotted name.
        digest.update(b"" if name == main else name.encode())
        digest.update(hashlib.sha256(_content(files[name]) or b"").digest())
    return digest.hexdigest()


def imported(path: Path, package: str) -> tuple[str, ...]:
    """The modules that a file may import, by its statements; `package` resolves relative imports.

    Returns:
        Dotted names with those of their packages; `from a import b` gives a.b as well.
    """
    content = _content(path)
    return () if content is None else _imported(path, package, hashlib.sha256(content).digest())


@lru_cache(maxsize=4096)
def _imported(path: Path, package: str, digest: bytes) -> tuple[str, ...]:
    del digest  # of the content that is read again
    modules: dict[str, None] = {}
    for node in (node for _, tree in syntax_trees(path) for node in _statements(tree)):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            named = [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
        else:
            continue
        for name in named:
            names = name.split(".")
            modules |= {".".join(names[: k + 1]): None for k in range(len(names))}
    return tuple(modules)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements of a module, also those inside others, without their expressions.

    An import is a statement, and `ast.walk` spends nine tenths of its time on expressions.
    """
    todo: deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        for name in _BLOCKS:
            todo.extend(getattr(node, name, ()))
        yield node


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    names = package.split(".") if package else []
    if node.level > len(names):
        return ""
    base = names[: len(names) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def functions_defined(path: Path) -> Iterator[tuple[str, str]]:
    """The decorated functions of a file at its top level, also those that later ones hide."""
    for name, tree in syntax_trees(path):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                yield node.name, f"{name}:{node.decorator_list[0].lineno}"


def syntax_trees(path: Path) -> list[tuple[str, ast.Module]]:
    """The syntax of a file by the name of its source: one, or one for each tagged cell.

    What is no Python has an empty tree: whoever loads it hears what is wrong.

    Raises:
        UserError: if a notebook has no tagged cell, or is none.

    Examples:
        >>> [(name, tree.body) for name, tree in syntax_trees(Path("/never/made.py"))]
        [('/never/made.py', [])]
    """
    return [(name, _parsed(text)) for name, text in _texts(path)]


def _texts(path: Path) -> list[tuple[str, str | bytes]]:
    """The sources of a file by their names: one, or one for each tagged cell of a notebook."""
    if path.suffix == ".ipynb":
        from attlas.projects.notebook import plain_python, tagged_cells

        cells = tagged_cells(path)
        return [(f"{path}[cell {number}]", plain_python(text)) for number, text in cells]
    return [(str(path), _content(path) or b"")]


def _parsed(text: str | bytes) -> ast.Module:
    try:
        with _PARSING:
            try:
                return ast.parse(text)
            except SystemError:  # an import of another thread was parsed meanwhile
                return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _content(path: Path) -> bytes | None:
    try:
        return read_plain_file(path, MOST_BYTES)
    except Damaged:
        return None


def _file_of(name: str, files: dict[str, Path]) -> Path | None:
    """The source of a module, loaded or not; nothing is executed."""
    parent, _, last = name.rpartition(".")
    above = files.get(parent)
    if above is not None and above.stem == "__init__":
        inside = (above.parent / f"{last}.py", above.parent / last / "__init__.py")
        return next((path for path in inside if path.is_file()), None)
    module = sys.modules.get(name)
    if isinstance(module, ModuleType):
        file = getattr(module, "__file__", None)
    else:
        file = module_file(name)
    return Path(file) if file and str(file).endswith((".py", ".ipynb")) else None


def is_of_project(file: Path, same_package: bool) -> bool:
    """Whether a file belongs to a project, and not to attlas, Python or what is installed.

    Args:
        same_package: it lies in the package of a file that belongs to one.

    Examples:
        >>> is_of_project(Path(__file__), same_package=True)
        False
    """
    if file.is_relative_to(PACKAGE):
        return False
    return same_package or not is_installed(file)


def is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package: site-packages, standard library.

    Examples:
        >>> import json
        >>> is_installed(Path(json.__file__))
        True
    """
    return any(part in _INSTALLED for part in file.parts) or any(
        file.is_relative_to(folder) for folder in _libraries()
    )


@cache
def _libraries() -> tuple[Path, ...]:
    return tuple(dict.fromkeys(_library_folders()))


def _library_folders() -> Iterator[Path]:
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        folder = sysconfig.get_paths().get(name)
        if folder:
            yield Path(folder)
            yield Path(folder).resolve()
