"""Papers that are installed: packages that announce claims by the entry point `attlas.claims`."""

import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attlas.core.errors import UserError
from attlas.projects.places import read_place
from attlas.projects.project import Project, announced, project_in
from attlas.projects.source import dotted_name


@dataclass(frozen=True)
class InstalledPaper:
    """A package that announces claims.

    Attributes:
        name: of the entry point.
        module: dotted name of the package or module that it announces.
        project: what the `pyproject.toml` in the package's folder says; None where there is none.
    """

    name: str
    module: str
    project: Project | None

    @property
    def key(self) -> str:
        """The key of the paper; the announced name where no project gives one."""
        return self.project.key if self.project and self.project.key else self.name

    def claim_modules(self) -> dict[str, Path]:
        """The modules that may define claims, with their files; nothing is imported.

        Returns:
            Files by dotted names; none where no project says which they are.

        Raises:
            UserError: if a pattern of the project matches no file.
        """
        return {} if self.project is None else _modules(self.project.claims_or_folder, self.project)

    def experiment_modules(self) -> dict[str, Path]:
        """The modules that may define experiments, with their files; nothing is imported.

        Returns:
            Files by dotted names; none where no project says which they are.

        Raises:
            UserError: if a pattern of the project matches no file.
        """
        return {} if self.project is None else _modules(self.project.experiments, self.project)

    def claim_modules_defining(self, slug: str) -> tuple[str, ...]:
        """The modules whose text defines a function from which a claim takes its name.

        Args:
            slug: the claim's name without its paper, such as `lemma-12`.

        Returns:
            Dotted names, in order.
        """
        function = re.escape(slug.replace("-", "_"))
        pattern = re.compile(rf"^def _*{function}_*\(", re.MULTILINE)
        return tuple(
            name
            for name, file in self.claim_modules().items()
            if pattern.search(file.read_text(encoding="utf-8", errors="replace"))
        )


def installed_papers() -> tuple[InstalledPaper, ...]:
    """The packages that announce claims, in order of their names; none is imported.

    Returns:
        Papers; an announced package that cannot be found is left out until it is asked for.

    Examples:
        >>> "julistiono2024optimizing" in [paper.key for paper in installed_papers()]
        True
    """
    return tuple(_paper(name, module) for name, module in announced())


def is_of_installed_paper(filename: str) -> bool:
    """Whether a file belongs to a package that announces claims.

    Args:
        filename: absolute; a cell of a notebook has a name of its own.

    Returns:
        Whether it lies in the folder of one.

    Examples:
        >>> is_of_installed_paper("claims_mine.py")
        False
    """
    return any(Path(filename).is_relative_to(folder) for folder in _folders(announced()))


def is_announced(module: str) -> bool:
    """Whether a module belongs to a package that announces claims.

    Returns:
        Whether the package, or the module itself, is announced.

    Examples:
        >>> is_announced("json.decoder")
        False
    """
    return any(module == name or module.startswith(f"{name}.") for _, name in announced())


@cache
def _paper(name: str, module: str) -> InstalledPaper:
    folder = _folder(module)
    return InstalledPaper(name, module, None if folder is None else project_in(folder))


@cache
def _folders(names: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    return tuple(folder for _, module in names if (folder := _folder(module)) is not None)


def _folder(module: str) -> Path | None:
    """The folder of a package, found without importing it."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _modules(patterns: tuple[str, ...], project: Project) -> dict[str, Path]:
    files = [file for each in patterns for file in read_place(each, project.root).files]
    if any(file.suffix != ".py" for file in files):
        raise UserError(
            f"{project.file}: an installed package defines claims in modules: name .py files"
        )
    return {dotted_name(file)[0]: file for file in files if file.stem != "__init__"}
