"""Names that cost nothing before they are used."""

import subprocess
import sys

import pytest

from attlas.core.lazy_names import lazy_names


def test_a_name_is_found_where_it_stands_and_kept():
    import attlas._files as package

    find, names = lazy_names("attlas._files", {"draft_of": "draft"})
    try:
        assert find("draft_of").__module__ == "attlas._files.draft"
        assert vars(package)["draft_of"] is find("draft_of")
        assert "draft_of" in names()
        assert names() == sorted(names())
    finally:
        vars(package).pop("draft_of", None)


def test_a_name_that_is_not_there_is_named():
    find, _ = lazy_names("attlas.core", {})
    with pytest.raises(AttributeError, match=r"module 'attlas\.core' has no attribute 'missing'"):
        find("missing")


def test_the_front_door_imports_no_module_of_its_names():
    script = "import sys, attlas; print([m for m in sys.modules if m.startswith('attlas.bounds')])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
