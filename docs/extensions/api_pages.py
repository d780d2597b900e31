"""One page for each folder of the library, of all its public names; written before each build."""

import pkgutil
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

import attlas
from attlas.experiments.find import find_experiments
from attlas.site.public_names import public_names

_LEFT_OUT = (
    "attlas.cli",
    "attlas.torch",
    "attlas.capture",
    "attlas.audit.captured",
)
"""Commands have a page of their own; torch may not be installed."""
_PARTS = """
Modules that nothing but `attlas.verify` imports are its parts: what they are given was read, drawn
or traced for them, and they may change with it.
"""


def modules() -> dict[str, list[str]]:
    """The library's modules by their folder.

    Returns:
        Dotted names of modules below dotted names of folders, sorted.
    """
    found: dict[str, list[str]] = {}
    for module in pkgutil.walk_packages(attlas.__path__, "attlas."):
        is_private = "._" in module.name or module.name.startswith(_LEFT_OUT)
        if not is_private and not module.ispkg:
            found.setdefault(module.name.rpartition(".")[0], []).append(module.name)
    return {folder: sorted(names) for folder, names in sorted(found.items())}


@cache
def experiments_by_module() -> dict[str, list[tuple[str, str]]]:
    """Names and titles of the experiments with figures that use each module of the library.

    Returns:
        Pairs by the dotted name of the module.
    """
    used: dict[str, list[tuple[str, str]]] = {}
    for experiment in find_experiments():
        names = public_names(experiment.source[0]) if experiment.figures else ()
        for module in sorted({name.rpartition(".")[0] for name in names}):
            used.setdefault(module, []).append((experiment.name, escape(experiment.title)))
    return used


def page(folder: str, names: list[str]) -> str:
    """The source of one page.

    Args:
        folder: dotted name.
        names: of its modules.

    Returns:
        MyST.
    """
    used = experiments_by_module()
    about = (import_module(folder).__doc__ or "").strip().partition("\n")[0]
    parts = [f"# `{folder}`\n\n{about}\n{_PARTS if folder.startswith('attlas.verify') else ''}"]
    for name in names:
        short = name.rpartition(".")[2]
        parts.append(
            f"## {short}\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n"
            "   :show-inheritance:\n```\n"
        )
        if name in used:
            links = ", ".join(
                f'<a href="../atlas/experiment-{each}.html">{title}</a>'
                for each, title in used[name]
            )
            parts.append(f'<p class="figures">Figures made with it: {links}.</p>\n')
    return "\n".join(parts)


def write_pages(app: Sphinx) -> None:
    """Write the pages whose content changed, and their index.

    Args:
        app: Sphinx.
    """
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    wanted = {f"{key}.md": page(key, names) for key, names in modules().items()}
    listed = "\n".join(name.removesuffix(".md") for name in wanted)
    wanted["index.md"] = (
        "# The library\n\nEvery public name, with its formula and an example that is run by the "
        f"tests. The front door, `import attlas as at`, is the page of [](attlas.md).\n\n"
        f"```{{toctree}}\n:titlesonly:\n\nattlas\n{listed}\n```\n"
    )
    wanted["attlas.md"] = (
        "# `attlas`\n\n```{eval-rst}\n.. automodule:: attlas\n   :no-members:\n```\n"
    )
    write_changed(folder, wanted)


def write_changed(folder: Path, wanted: dict[str, str]) -> None:
    """Bring a folder of generated pages to what it should hold.

    Args:
        folder: of nothing but generated pages.
        wanted: sources by file name; unchanged files keep their time, so that Sphinx skips them.
    """
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        place = folder / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
