"""The atlas as a part of the site, from the results folder and what is published."""

import shutil
from pathlib import Path

from sphinx.application import Sphinx

from attlas.experiments.find import find_experiments
from attlas.experiments.store import Store, published_store
from attlas.site.atlas import write_atlas
from attlas.site.checked_claims import source_of
from attlas.verify.registry import find_claims

FRONT = "atlas.html"
"""The front page; the other pages, the explorer among them, lie in the folder `atlas` beside it."""


def copy_sources(target: Path) -> None:
    """Copy the sources of claims and experiments, to which pages of the atlas link.

    Args:
        target: the folder of the site.
    """
    places = [claim.place for claim in find_claims()]
    places += [experiment.source for experiment in find_experiments()]
    for file, line in places:
        source = source_of((file, line))
        if source.link:
            copy = target / source.path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the atlas beside the pages of the documentation, which its navigation leads to.

    Args:
        app: the build.
        exception: why it failed, None where it did not.
    """
    if exception is None and app.builder.format == "html":
        copy_sources(Path(app.outdir))
        write_atlas(Store(), Path(app.outdir) / FRONT, published=published_store())


def setup(app: Sphinx) -> dict[str, bool]:
    """Write after the pages of the documentation."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
