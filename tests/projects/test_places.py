"""Which files a folder stands for."""

from attlas.projects.places import files_of, is_importable, read_place


def test_files_that_are_named_for_claims_come_before_those_that_import_attlas(tmp_path):
    (tmp_path / "train.py").write_text("import attlas\n")
    (tmp_path / "plot.py").write_text("import math\n")
    (tmp_path / "setup.py").write_text("import attlas\n")
    (tmp_path / "test_it.py").write_text("from attlas.verify.check import check\n")
    assert [f.name for f in files_of(tmp_path)] == ["train.py"]
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "one.py").write_text("")
    (tmp_path / "claims" / ".hidden").mkdir()
    (tmp_path / "claims" / ".hidden" / "two.py").write_text("")
    (tmp_path / "claims_three.py").write_text("")
    assert [f.name for f in files_of(tmp_path)] == ["one.py", "claims_three.py"]
    assert [f.name for f in files_of(tmp_path / "claims")] == ["one.py"]


def test_a_file_with_a_colon_is_a_file(tmp_path):
    (tmp_path / "a:b.py").write_text("")
    assert read_place("a:b.py", tmp_path).files == (tmp_path / "a:b.py",)
    assert read_place("a:b.py:c", tmp_path).name == "c"


def test_a_module_below_src_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    (tmp_path / "src" / "found_below_src").mkdir(parents=True)
    (tmp_path / "src" / "found_below_src" / "__init__.py").write_text("")
    assert is_importable("found_below_src", tmp_path)
    assert not is_importable("not_there_at_all", tmp_path)


def test_a_pattern_may_begin_at_the_root(tmp_path):
    (tmp_path / "claims_a.py").touch()
    assert read_place(str(tmp_path / "claims_*.py")).files == (tmp_path / "claims_a.py",)
