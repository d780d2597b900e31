"""The explorer as one HTML file that opens from disk and loads nothing."""

import json
from pathlib import Path

from markupsafe import Markup

from attlas.experiments.panels.palette import PALETTE
from attlas.experiments.text_file import probe_text_file, write_text_file
from attlas.site.bundle import bundle, modules
from attlas.site.explorer.draws import encoded, head_draws, mixture_draws
from attlas.site.links import Links
from attlas.site.page import render_template, template_file


def render_explorer(links: Links | None = None, docs: str = "", gallery: bool = False) -> str:
    """The explorer as a document that runs only its script and loads nothing.

    Args:
        links: to the other pages of an atlas, where it is one of them.
        docs: address of the documentation beside that atlas; may be empty.
        gallery: whether that atlas has a gallery.
    """
    stored = json.dumps({"head": encoded(head_draws()), "mixture": encoded(mixture_draws())})
    return render_template(
        "explorer.html.j2",
        style=palette_style() + template_file("plane.css") + template_file("explorer.css"),
        script=bundle(modules("explorer"), "main"),
        stored=Markup(stored),
        links=links or Links(),
        docs=docs,
        gallery=gallery,
        title="",
    )


def palette_style() -> str:
    """The figures' palette as CSS classes: lines `c0`, `c1`, ... and surfaces `f0`, `f1`, ....

    On a dark page the colours are mixed with white.

    Examples:
        >>> "--series-0: #0072b2" in palette_style()
        True
    """
    names = " ".join(f"--series-{k}: {colour};" for k, colour in enumerate(PALETTE))
    lighter = " ".join(
        f"--series-{k}: color-mix(in srgb, {colour} 72%, white);"
        for k, colour in enumerate(PALETTE)
    )
    used = "\n".join(
        f".c{k} {{ stroke: var(--series-{k}); }} .f{k} {{ fill: var(--series-{k}); }}"
        for k in range(len(PALETTE))
    )
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {lighter} }} }}"
    return f":root {{ {names} }}\n{dark}\n{used}\n"


def write_explorer(path: Path) -> Path:
    """Write the explorer; raises UserError if the file cannot be written."""
    probe_text_file(path, "--out")
    return write_text_file(path, render_explorer(), "--out")
