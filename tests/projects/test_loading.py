"""A place is loaded once, and again when its sources changed; each object knows its home."""

import sys

import pytest

from attlas.claims.claim import Erratum
from attlas.core.errors import UserError
from attlas.projects.loading import load_place, loaded_home, objects_of, shown_path

TEXT = """from attlas.claims.claim import Erratum, ErratumClass
ONE = Erratum("a", "Lemma {number}", ErratumClass.TYPO, "text")
"""


def test_two_files_of_one_name_are_two_modules(tmp_path):
    for number, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one_name.py").write_text(TEXT.format(number=number))
    found = [objects_of(str(tmp_path / name / "one_name.py"), Erratum) for name in ("a", "b")]
    assert [item.locator for (item,) in found] == ["Lemma 0", "Lemma 1"]


def test_a_file_named_like_a_module_of_python_does_not_hide_it(tmp_path):
    file = tmp_path / "colorsys.py"
    file.write_text(TEXT.format(number=2))
    (loaded,) = load_place(str(file))
    assert loaded.module.__name__ != "colorsys"
    import colorsys

    assert hasattr(colorsys, "rgb_to_hsv") or sys.modules["colorsys"] is not loaded.module


def test_an_edit_of_equal_length_is_seen(tmp_path):
    file = tmp_path / "equal_length.py"
    file.write_text(TEXT.format(number=3))
    (before,) = load_place(str(file))
    assert loaded_home(str(file)) is before
    file.write_text(TEXT.format(number=4))
    (after,) = load_place(str(file))
    assert (before.module.ONE.locator, after.module.ONE.locator) == ("Lemma 3", "Lemma 4")
    assert before.digest != after.digest


def test_a_module_that_failed_is_not_kept(tmp_path):
    file = tmp_path / "fails_once.py"
    file.write_text("1 / 0\n")
    with pytest.raises(UserError, match=r"fails_once\.py:1: ZeroDivisionError"):
        load_place(str(file))
    assert "fails_once" not in sys.modules
    file.write_text(TEXT.format(number=5))
    assert len(objects_of(str(file), Erratum)) == 1


def test_paths_are_shown_as_the_user_would_write_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown_path(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert shown_path("/elsewhere/b.py") == "/elsewhere/b.py"
