"""Functions get the arrays that their parameters name."""

import subprocess
import sys
from functools import partial

import pytest

from attlas.core.errors import UserError
from attlas.core.names import call_by_name, lazy_names, nearest, parameters


def test_roles_of_parameters():
    def sides(W, p, *, factor=1.0, **others):
        return W, p, factor, others

    assert parameters(sides) == (("W", "p"), ("factor",), True)
    assert parameters(partial(sides, factor=2.0)).options == ("factor",)
    found = call_by_name(sides, {"W": 1, "p": 2, "x": 3}, {"factor": 4, "unknown": 5})
    assert found == (1, 2, 4, {"x": 3})


def test_a_missing_array_is_named_with_the_nearest():
    def sides(weigth):
        return weigth

    with pytest.raises(UserError, match=r"'sides' reads 'weigth': did you mean weight\?"):
        call_by_name(sides, {"weight": 1})
    assert nearest("x", ()) == "There are none"


def test_a_name_is_found_where_it_stands_and_kept():
    import attlas._files as package

    find, names = lazy_names("attlas._files", {"write_file": "file_changes"})
    try:
        assert find("write_file").__module__ == "attlas._files.file_changes"
        assert vars(package)["write_file"] is find("write_file")
        assert "write_file" in names()
        assert names() == sorted(names())
    finally:
        vars(package).pop("write_file", None)


def test_a_name_that_is_not_there_is_named():
    find, _ = lazy_names("attlas.core", {})
    with pytest.raises(AttributeError, match=r"module 'attlas\.core' has no attribute 'missing'"):
        find("missing")


def test_the_front_door_imports_no_module_of_its_names():
    script = "import sys, attlas; print([m for m in sys.modules if m.startswith('attlas.bounds')])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
