"""The explorer and the atlas as parts of the site.

The explorer is written with the site; the atlas, where it was made before, is copied into it.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from attlas.site.explorer.page import write_explorer

ROOT = Path(__file__).parents[2]
FRONT, PAGES = ROOT / "atlas.html", ROOT / "atlas"
"""What `make atlas` writes."""


def note(app: Sphinx, config: Config) -> None:
    """Let the sources know whether there is an atlas to link to.

    Args:
        app: the build.
        config: of the build.
    """
    if FRONT.is_file():
        app.tags.add("atlas")


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the pages beside those of the site; links to sources lead nowhere there.

    Args:
        app: the build.
        exception: why it failed, None where it did not.
    """
    if exception is not None or app.builder.format != "html":
        return
    target = Path(app.outdir)
    write_explorer(target / "explorer.html")
    if not FRONT.is_file():
        return
    shutil.copyfile(FRONT, target / FRONT.name)
    if PAGES.is_dir():
        shutil.rmtree(target / PAGES.name, ignore_errors=True)
        shutil.copytree(PAGES, target / PAGES.name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look before the sources are read, copy after the pages are written."""
    app.connect("config-inited", note)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
