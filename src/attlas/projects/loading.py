"""Load what a place defines; what goes wrong there is said with the user's own file and line."""

import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.core.extras import missing_extra
from attlas.core.named_call import nearest
from attlas.projects.installed import InstalledPaper, is_of_installed_paper
from attlas.projects.notebook import run_cells
from attlas.projects.places import Place, on_path, read_place
from attlas.projects.source import (
    PACKAGE,
    digest_of,
    dotted_name,
    is_installed,
    own_files,
    with_data,
)

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Loaded:
    """A module of the user's, as it was when it ran.

    Attributes:
        module: the module.
        home: what finds it in another process: its file, or its dotted name.
        files: its source, that of the project's modules which it imports, and the project's data.
        digest: sha256 of these when they ran.
    """

    module: ModuleType
    home: str
    files: dict[str, Path]
    digest: str


_LOADED: dict[str, Loaded] = {}


def loaded_home(home: str) -> Loaded | None:
    """What was loaded from a home in this process.

    Args:
        home: see `Loaded`.

    Returns:
        The module with its sources, None where nothing was.
    """
    return _LOADED.get(home)


def load_place(place: Place | str) -> tuple[Loaded, ...]:
    """The modules of a place, each run once; again only when its own sources have changed.

    Args:
        place: see `attlas.projects.places.read_place`.

    Returns:
        Modules in order of their files or names.

    Raises:
        UserError: if nothing is there, or what is there cannot be imported: the user's file and
            line, and what was raised there.
    """
    found = read_place(place) if isinstance(place, str) else place
    if not found.module:
        return tuple(_load(str(path), _module_name(path), path) for path in found.files)
    top = _load_module(found.module)
    below = [info.name for info in _submodules(top.module)]
    return (top, *(_load_module(name) for name in below))


def objects_of_module(name: str, kind: type[Kind]) -> tuple[Kind, ...]:
    """The objects of a class that one importable module defines, those of its submodules left out.

    Args:
        name: dotted name of the module.
        kind: the class looked for.

    Returns:
        Objects in order of lines, each once.

    Raises:
        UserError: if the module cannot be imported: the file and line, and what was raised there.
    """
    return _objects_in([_load_module(name)], "", kind)


def objects_of_installed(
    paper: InstalledPaper, modules: Iterable[str], kind: type[Kind]
) -> tuple[Kind, ...]:
    """The objects of a class that an installed paper defines.

    Args:
        paper: announced by a package.
        modules: those of its modules that may define some; where its project names none, the
            whole package is loaded.
        kind: the class looked for.

    Returns:
        Objects in order of modules and lines, each once.

    Raises:
        UserError: if a module cannot be imported; the line names the paper.
    """
    try:
        if paper.project is None:
            return objects_of(paper.module, kind)
        return _objects_in(map(_load_module, modules), "", kind)
    except UserError as error:
        raise UserError(f"the installed '{paper.name}' announces claims: {error}") from error


def objects_of(place: Place | str, kind: type[Kind]) -> tuple[Kind, ...]:
    """The objects of a class that a place defines, or that it takes from other files of the user.

    Each gets the attribute `home`, by which another process finds it.

    Args:
        place: see `attlas.projects.places.read_place`.
        kind: the class looked for; a tuple at module level counts as its members.

    Returns:
        Objects in order of files and lines, each once.

    Raises:
        UserError: see `load_place`; or where the one object that is named is not there.
    """
    found = read_place(place) if isinstance(place, str) else place
    objects = _objects_in(load_place(found), found.name, kind)
    if found.name and not objects:
        kinds = kind.__name__.lower()
        known = _named(found, kind)
        raise UserError(
            f"'{found.text}' defines no {kinds} named '{found.name}': {nearest(found.name, known)}"
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
    """The names under which the modules of a place hold objects of a class."""
    return tuple(
        name
        for loaded in load_place(place)
        for name, value in vars(loaded.module).items()
        if isinstance(value, kind) and not _is_of_another_paper(value, loaded.module)
    )


def _values(module: ModuleType, name: str) -> list[object]:
    known = vars(module)
    if not name:
        return list(known.values())
    return [known[name]] if name in known else []


def _is_of_another_paper(item: object, module: ModuleType) -> bool:
    """Whether a module only imports an object that an installed paper defines."""
    place = getattr(item, "place", None) or getattr(item, "source", None)
    if not isinstance(place, tuple) or not is_of_installed_paper(place[0]):
        return False
    top = module.__name__.partition(".")[0]
    return dotted_name(Path(place[0]))[0].partition(".")[0] != top


def _module_name(path: Path) -> str:
    """The name of a file as a module; imports beside it are found from then on."""
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
    return _told(Path(name), lambda: importlib.import_module(name))


def _current(home: str) -> Loaded | None:
    """What was loaded, unless its sources have changed since; then their modules are forgotten."""
    known = _LOADED.get(home)
    if known is None or digest_of(with_data(known.files)) == known.digest:
        return known
    del _LOADED[home]
    importlib.invalidate_caches()
    for name in known.files:
        sys.modules.pop(name, None)
    return None


def _remembered(home: str, name: str, path: Path | None, run: Callable[[], ModuleType]) -> Loaded:
    module = run()
    # A folder of modules has no file.
    files = {} if path is None else with_data(own_files(name, path))
    _LOADED[home] = loaded = Loaded(module, home, files, digest_of(files))
    return loaded


def _run_file(name: str, path: Path) -> ModuleType:
    """Run a file as a module; the one that was imported under its name is kept."""
    present = sys.modules.get(name)
    if present is not None and getattr(present, "__file__", None) == str(path):
        return present
    return _told(path, lambda: _execute(name, path))


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
    found = pkgutil.walk_packages(folders, f"{module.__name__}.", onerror=lambda name: None)
    return sorted((i for i in found if not i.name.endswith("__main__")), key=lambda info: info.name)


def _told(path: Path, run: Callable[[], ModuleType]) -> ModuleType:
    """What `run` gives; what it raises becomes one line with the user's file and line."""
    try:
        return run()
    except SystemExit as error:
        raise UserError(
            f"{_where(error, path)}: it ends the process: put what is to run below "
            "`if __name__ == '__main__':`"
        ) from error
    except Exception as error:
        raise UserError(f"{_where(error, path)}: {_said(error)}") from error


def _said(error: Exception) -> str:
    told = printable(str(error))
    if isinstance(error, UserError):
        return told
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}: correct it there"
    if isinstance(error, ModuleNotFoundError):
        if line := missing_extra(error, "it", "experiments"):
            return line
        return f"{told}: install it, or put its folder on PYTHONPATH"
    return f"{type(error).__name__}: {told}: correct it there" if told else type(error).__name__


def _where(error: BaseException, path: Path) -> str:
    """The user's file and line at which something was raised, the innermost one."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shown_path(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename)]
    return f"{shown_path(own[-1].filename)}:{own[-1].lineno}" if own else shown_path(str(path))


def _is_users(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = Path(filename)
    return not (path.is_relative_to(PACKAGE) or is_installed(path))


def shown_path(filename: str) -> str:
    """A path as the user would write it: relative where it is below the working directory.

    Args:
        filename: absolute or not.

    Returns:
        The shorter form.
    """
    inside = os.path.relpath(filename) if Path(filename).is_absolute() else filename
    return filename if inside.startswith(os.pardir) else inside
