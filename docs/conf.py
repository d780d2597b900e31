"""What Sphinx reads; `make docs` builds the site.

Settings of all other tools stand in pyproject.toml; Sphinx reads this file only.
"""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "attlas"
author = "The attlas developers"
copyright = author
release = version = installed("attlas")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api_pages",
    "atlas",
    "claims",
    "docstrings",
    "mathematics",
]
exclude_patterns = ["_build", "guides", "templates"]
nitpicky = False
default_role = "code"

html_theme = "furo"
# The bar of the atlas, filled in by templates/page.html.
html_theme_options = {"announcement": "the site"}
templates_path = ["templates"]
html_title = "attlas"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["attlas.css"]
html_show_sphinx = False
html_search_scorer = str(Path(__file__).parent / "search_scores.js")

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3

# Tutorials run when the site is built; an error in one is an error of the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["torch"]
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Source", "Source")]
