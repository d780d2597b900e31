"""The atlas as a part of the site, from the results folder and what is published."""

from pathlib import Path

from sphinx.application import Sphinx

from attlas.experiments.store import Store, published_store
from attlas.site.atlas import write_atlas

FRONT = "atlas.html"
"""The front page; the other pages, the explorer among them, lie in the folder `atlas` beside it."""


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the atlas beside the pages of the documentation, which its navigation leads to.

    Args:
        app: the build.
        exception: why it failed, None where it did not.
    """
    if exception is None and app.builder.format == "html":
        write_atlas(Store(), Path(app.outdir) / FRONT, published=published_store())


def setup(app: Sphinx) -> dict[str, bool]:
    """Write after the pages of the documentation."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
