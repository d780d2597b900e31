"""Papers that are installed: packages that announce claims by the entry point `attlas.claims`."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attlas.core.errors import UserError
from attlas.projects.places import module_file, read_place, say_once
from attlas.projects.project import Project, announced, project_here, project_in
from attlas.projects.source import dotted_name


@dataclass(frozen=True)
class InstalledPaper:
    """A package that announces claims.

    Attributes:
        name: name of the entry point.
        module: dotted name of the package or module that it announces.
        project: settings in the `pyproject.toml` in the package's folder, None without one.
    """

    name: str
    module: str
    project: Project | None

    @property
    def key(self) -> str:
        """The key of the paper; without a project, the name of the entry point."""
        return self.project.key if self.project and self.project.key else self.name

    def claim_modules(self) -> dict[str, Path]:
        """Files of the modules that may define claims, by dotted name; nothing is imported.

        Raises:
            UserError: if a pattern of the project matches no file.
        """
        return {} if self.project is None else _modules(self.project.claims_or_folder, self.project)

    def experiment_modules(self) -> dict[str, Path]:
        """Files of the modules that may define experiments, likewise."""
        return {} if self.project is None else _modules(self.project.experiments, self.project)

    def claim_modules_defining(self, slug: str) -> tuple[str, ...]:
        """The modules whose text defines the function of a claim, such as `lemma-12`."""
        function = re.escape(slug.replace("-", "_"))
        pattern = re.compile(rf"^def _*{function}_*\(", re.MULTILINE)
        return tuple(
            name
            for name, file in self.claim_modules().items()
            if pattern.search(file.read_text(encoding="utf-8", errors="replace"))
        )


def installed_papers() -> tuple[InstalledPaper, ...]:
    """The packages that announce claims, in order of their names; none is imported.

    A package whose `pyproject.toml` is wrong is named on stderr and set aside.

    Examples:
        >>> "julistiono2024optimizing" in [paper.key for paper in installed_papers()]
        True
    """
    papers = []
    for name, module in announced():
        try:
            papers.append(_paper(name, module))
        except UserError as error:
            set_aside(name, error)
    return tuple(papers)


def set_aside(name: str, error: UserError) -> None:
    """Name an announced package that does not load, and why, on stderr; once in a process."""
    say_once(f"attlas: the installed '{name}' is set aside: {error}")


def known_places() -> str:
    """The end of an error about an unknown name: where it was searched, and how to reach others."""
    project = project_here()
    local = "no project here" if project is None else f"the project {project.key} here"
    papers = ", ".join(paper.key for paper in installed_papers()) or "none"
    return (
        f"Searched: {local}; installed papers: {papers}. For another paper install the package "
        "that announces it, run attlas in its folder, or name its file"
    )


def is_of_installed_paper(filename: str) -> bool:
    """Whether a file, by its absolute path, lies in the folder of a package that announces claims.

    Examples:
        >>> is_of_installed_paper("claims_mine.py")
        False
    """
    return any(Path(filename).is_relative_to(folder) for folder in _folders(announced()))


@cache
def _paper(name: str, module: str) -> InstalledPaper:
    folder = _folder(module)
    return InstalledPaper(name, module, None if folder is None else project_in(folder))


@cache
def _folders(names: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    return tuple(folder for _, module in names if (folder := _folder(module)) is not None)


def _folder(module: str) -> Path | None:
    """The folder of a package; nothing is imported."""
    file = module_file(module)
    if file is None or file.is_dir():
        return file
    return file.parent if file.stem == "__init__" else None


def _modules(patterns: tuple[str, ...], project: Project) -> dict[str, Path]:
    files = [file for text in patterns for file in read_place(text, project.root).files]
    if any(file.suffix != ".py" for file in files):
        raise UserError(
            f"{project.file}: an installed package defines claims in modules: name .py files"
        )
    return {dotted_name(file)[0]: file for file in files if file.stem != "__init__"}
