"""Load the modules of a place; an error there becomes one line with the user's file and line."""

import importlib
import importlib.util
import linecache
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from attlas._files.plain_file import printable
from attlas.core.errors import UserError, missing_extra
from attlas.core.names import nearest
from attlas.projects.places import Place, on_path, read_place
from attlas.projects.project import is_announced
from attlas.projects.source import (
    PACKAGE,
    digest_of,
    dotted_name,
    is_installed,
    package_files,
    with_data,
)

if TYPE_CHECKING:  # a file of a user concerns none
    from attlas.projects.installed import InstalledPaper

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Loaded:
    """A module of a user project, as it was when it ran.

    Attributes:
        home: its file or its dotted name, by which another process finds it.
        files: its source, those of the project's modules which it imports, and the project's data.
        digest: sha256 of these when they ran.
    """

    module: ModuleType
    home: str
    files: dict[str, Path]
    digest: str


_LOADED: dict[str, Loaded] = {}


def loaded_home(home: str) -> Loaded | None:
    """The module that this process loaded from a home, None if it did not."""
    return _LOADED.get(home)


def loaded_files() -> set[Path]:
    """The sources and data of all modules that this process loaded."""
    return {path for loaded in _LOADED.values() for path in loaded.files.values()}


def load_place(place: Place | str) -> tuple[Loaded, ...]:
    """The modules of a place, each run once; again only after its own sources have changed.

    Returns:
        Modules in order of their files or names.

    Raises:
        UserError: if the place is empty or cannot be imported: the user's file and line, and the
            error there.
    """
    location = read_place(place) if isinstance(place, str) else place
    if not location.module:
        return tuple(_load(str(path), _module_name(path), path) for path in location.files)
    top = _load_module(location.module)
    below = [info.name for info in _submodules(top.module)]
    return (top, *(_load_module(name) for name in below))


Modules = Callable[["InstalledPaper"], Iterable[str]]
"""Which modules of an installed paper may define objects of a class."""


def objects_of_paper(
    paper: "InstalledPaper", modules: Modules, kind: type[Kind]
) -> tuple[Kind, ...]:
    """The objects of a class that an installed paper defines, in order of modules and lines.

    Without a project, which says what its modules are, the package is imported as a whole.

    Raises:
        UserError: if a module cannot be imported; the line names the paper.
    """
    try:
        return _objects_of_paper(paper, modules, kind)
    except UserError as error:
        raise UserError(f"the installed '{paper.name}' announces claims: {error}") from error


def objects_of_papers(
    papers: "Iterable[InstalledPaper]", modules: Modules, kind: type[Kind]
) -> tuple[Kind, ...]:
    """The objects of a class that installed papers define; one that does not load is set aside."""
    from attlas.projects.installed import set_aside

    objects: list[Kind] = []
    for paper in papers:
        try:
            objects += _objects_of_paper(paper, modules, kind)
        except UserError as error:
            set_aside(paper.name, error)
    return tuple(objects)


def _objects_of_paper(
    paper: "InstalledPaper", modules: Modules, kind: type[Kind]
) -> tuple[Kind, ...]:
    if paper.project is None:
        return objects_of(paper.module, kind)
    return _objects_in(map(_load_module, modules(paper)), "", kind)


def objects_of(place: Place | str, kind: type[Kind]) -> tuple[Kind, ...]:
    """The objects of a class that a place defines, or that it imports from other files of the user.

    Each gets the attribute `home`, by which another process finds it. A tuple at module level
    counts as its members.

    Returns:
        Objects in order of files and lines, each once.

    Raises:
        UserError: see `load_place`; or if the place names one object that is missing.
    """
    location = read_place(place) if isinstance(place, str) else place
    objects = _objects_in(load_place(location), location.name, kind)
    if location.name and not objects:
        kinds = kind.__name__.lower()
        names = _named(location, kind)
        raise UserError(
            f"'{location.text}' defines no {kinds} named '{location.name}': "
            f"{nearest(location.name, names)}"
        )
    return objects


def _objects_in(modules: Iterable[Loaded], name: str, kind: type[Kind]) -> tuple[Kind, ...]:
    objects: dict[int, Kind] = {}
    for loaded in modules:
        for value in _values(loaded.module, name):
            for item in value if isinstance(value, tuple | list) else (value,):
                if isinstance(item, kind) and not _is_of_another_paper(item, loaded.module):
                    if getattr(item, "home", None) == "":
                        object.__setattr__(item, "home", loaded.home)
                    objects.setdefault(id(item), item)
    return tuple(objects.values())


def _named(place: Place, kind: type) -> tuple[str, ...]:
    """The names under which the modules of a place define objects of a class."""
    return tuple(
        name
        for loaded in load_place(place)
        for name, value in vars(loaded.module).items()
        if isinstance(value, kind) and not _is_of_another_paper(value, loaded.module)
    )


def _values(module: ModuleType, name: str) -> list[object]:
    variables = vars(module)
    if not name:
        return list(variables.values())
    return [variables[name]] if name in variables else []


def _is_of_another_paper(item: object, module: ModuleType) -> bool:
    """Whether a module only imports an object that an installed paper defines."""
    place = getattr(item, "place", None) or getattr(item, "source", None)
    if not isinstance(place, tuple) or place[0] == getattr(module, "__file__", None):
        return False
    from attlas.projects.installed import is_of_installed_paper

    if not is_of_installed_paper(place[0]):
        return False
    top = module.__name__.partition(".")[0]
    return dotted_name(Path(place[0]))[0].partition(".")[0] != top


def _module_name(path: Path) -> str:
    """The name of a file as a module; imports beside it work from then on."""
    name, folder = dotted_name(path)
    on_path(folder)
    taken = sys.modules.get(name)
    of_another = taken is not None and getattr(taken, "__file__", None) != str(path)
    if "." not in name and (of_another or name in sys.stdlib_module_names):
        # Two files may have one name, and none may hide a module of Python.
        return f"{name}_{sha256(str(path).encode()).hexdigest()[:8]}"
    return name


def _load(home: str, name: str, path: Path) -> Loaded:
    """A file as a module of a name."""
    return _current(home) or _remembered(home, name, path, lambda: _run_file(name, path))


def _load_module(name: str) -> Loaded:
    """A module by its dotted name."""
    current = _current(name)
    if current is not None:
        return current
    file = getattr(_imported(name), "__file__", None)
    return _remembered(name, name, Path(file) if file else None, lambda: _imported(name))


def _imported(name: str) -> ModuleType:
    return _in_one_line(Path(name), lambda: importlib.import_module(name))


def _current(home: str) -> Loaded | None:
    """The loaded module, unless its sources have changed since; then Python forgets its modules."""
    loaded = _LOADED.get(home)
    if loaded is None or digest_of(with_data(loaded.files)) == loaded.digest:
        return loaded
    del _LOADED[home]
    importlib.invalidate_caches()
    for name in loaded.files:
        sys.modules.pop(name, None)
    return None


def _remembered(home: str, name: str, path: Path | None, run: Callable[[], ModuleType]) -> Loaded:
    module = run()
    # A folder of modules has no file.
    files = {} if path is None else with_data(package_files(name, path))
    _LOADED[home] = loaded = Loaded(module, home, files, digest_of(files))
    return loaded


def _run_file(name: str, path: Path) -> ModuleType:
    """Run a file as a module; a module that was imported under its name stays."""
    present = sys.modules.get(name)
    if present is not None and getattr(present, "__file__", None) == str(path):
        return present
    return _in_one_line(path, lambda: _execute(name, path))


def _execute(name: str, path: Path) -> ModuleType:
    parent, _, last = name.rpartition(".")
    package = importlib.import_module(parent) if parent else None
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix == ".ipynb":
        module = ModuleType(name)
        module.__file__ = str(path)
    elif spec is None or spec.loader is None:
        raise UserError(f"{path} cannot be read as Python: name a .py file")
    else:
        module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        if path.suffix == ".ipynb":
            from attlas.projects.notebook import run_cells  # few claims are in a notebook

            run_cells(path, module)
        else:
            # Compiled here: a cached file of the same second and size would be taken for this one.
            exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    if package is not None:
        setattr(package, last, module)
    return module


def _submodules(module: ModuleType) -> list[pkgutil.ModuleInfo]:
    folders = getattr(module, "__path__", None)
    if folders is None:
        return []
    modules = pkgutil.walk_packages(folders, f"{module.__name__}.", onerror=lambda name: None)
    return sorted(
        (i for i in modules if not i.name.endswith("__main__")), key=lambda info: info.name
    )


def _in_one_line(path: Path, run: Callable[[], ModuleType]) -> ModuleType:
    """The result of `run`; an error becomes one line with the user's file and line."""
    try:
        return run()
    except ModuleNotFoundError as error:
        # What a paper of attlas lacks is said of the command as a whole, see `extra_needed`.
        if is_announced(str(path)) and missing_extra(error, "it"):
            raise
        needed = missing_extra(error, "it", "experiments") or _description(error)
        raise UserError(f"{_where(error, path)}: {needed}") from error
    except SystemExit as error:
        raise UserError(
            f"{_where(error, path)}: it ends the process: put what is to run below "
            "`if __name__ == '__main__':`"
        ) from error
    except Exception as error:
        raise UserError(f"{_where(error, path)}: {_description(error)}") from error


def _description(error: Exception) -> str:
    text = printable(str(error))
    if isinstance(error, UserError):
        return text
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}: correct it there"
    if isinstance(error, ModuleNotFoundError):
        return f"{text}: install it, or put its folder on PYTHONPATH"
    return f"{type(error).__name__}: {text}: correct it there" if text else type(error).__name__


def _where(error: BaseException, path: Path) -> str:
    """The user's file and line at which an error was raised, the innermost one."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shown_path(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    project_frames = [frame for frame in frames if _is_users(frame.filename)]
    if not project_frames:
        return shown_path(str(path))
    return f"{shown_path(project_frames[-1].filename)}:{project_frames[-1].lineno}"


def _is_users(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = Path(filename)
    return not (path.is_relative_to(PACKAGE) or is_installed(path))


def shown_path(filename: str) -> str:
    """A path as the user would write it: relative where it is below the working directory.

    Examples:
        >>> shown_path(str(Path("claims.py").resolve())), shown_path("/claims.py")
        ('claims.py', '/claims.py')
    """
    inside = os.path.relpath(filename) if Path(filename).is_absolute() else filename
    return filename if inside.startswith(os.pardir) else inside


def source_digest(filename: str, home: str = "") -> str:
    """The sha256 of the sources of an object: its module, modules it imports, its project's data.

    Args:
        filename: file of the definition; a cell of a notebook is `<path>[cell N]`.
        home: file or module that `load_place` loaded, for objects of a user project.

    Returns:
        64 hexadecimal digits, of the sources as they were loaded; empty without a source.

    Examples:
        >>> len(source_digest(__file__)), source_digest("<nowhere>")
        (64, '')
    """
    loaded = loaded_home(home) if home else None
    if loaded is not None:
        return loaded.digest
    path = Path(filename.partition("[cell ")[0])
    if path.is_file():
        # Its imports and data may have changed while the file itself is the same.
        return digest_of(with_data(package_files(dotted_name(path)[0], path)))
    # A cell of a running notebook is known by line alone.
    text = "".join(linecache.getlines(filename))
    return sha256(text.encode()).hexdigest() if text else ""
