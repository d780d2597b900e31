"""A digest covers the author's own files, and nothing that was installed."""

import os
import sys
from pathlib import Path

import pytest

from attlas.core.errors import UserError
from attlas.projects.source import (
    digest_of,
    dotted_name,
    functions_defined,
    imported,
    package_files,
    with_data,
)
from attlas.verify.registry import find_claims


def test_own_imports_are_followed_and_installed_ones_are_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    main = tmp_path / "own_main.py"
    main.write_text("import json, numpy\nimport attlas\ndef f():\n    import own_part\n")
    (tmp_path / "own_part.py").write_text("from own_deep import x\n")
    (tmp_path / "own_deep.py").write_text("x = 1\n")
    files = package_files("own_main", main)
    assert list(files) == ["own_main", "own_part", "own_deep"]
    assert "own_part" not in sys.modules


def test_modules_of_a_package_are_found_without_running_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("1 / 0\n")
    (tmp_path / "own_package" / "part.py").write_text("")
    main = tmp_path / "own_user.py"
    main.write_text("def f():\n    from own_package.part import x\n")
    assert list(package_files("own_user", main)) == ["own_user", "own_package", "own_package.part"]


def test_a_digest_changes_with_any_file_and_not_with_the_folder(tmp_path):
    def laid_out(name, text):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.py").write_text("import b\n")
        (folder / "b.py").write_text(text)
        return {"a": folder / "a.py", "b": folder / "b.py"}

    first, same, other = laid_out("1", "x = 1"), laid_out("2", "x = 1"), laid_out("3", "x = 2")
    assert digest_of(first) == digest_of(same) != digest_of(other)
    gone = {**first, "b": tmp_path / "gone.py"}
    assert digest_of(gone) not in (digest_of(first), digest_of(other))


def test_imports_are_read_with_their_packages(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\n")
    assert imported(file, "p.q") == ("a", "a.b", "c", "c.d", "p", "p.q", "p.q.e", "p.f", "p.f.g")


def test_a_source_that_changes_with_equal_size_and_time_is_read_again(tmp_path):
    file = tmp_path / "m.py"
    for name in ("a", "b"):
        file.write_text(f"import {name}\n")
        os.utime(file, ns=(10**18, 10**18))
        assert imported(file, "") == (name,)


def test_an_installed_paper_counts_the_modules_of_its_package_that_it_imports():
    from deora2023optimization import corollary_1

    name = corollary_1.__name__
    files = package_files(name, Path(corollary_1.__file__))
    assert next(iter(files)) == name
    assert "deora2023optimization.instances" in files
    assert {each.partition(".")[0] for each in files} == {"deora2023optimization"}


def test_the_packages_of_a_module_count_though_it_imports_nothing_of_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    inner = tmp_path / "own_outer" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("import own_deep\n")
    (inner / "__init__.py").write_text("")
    (inner / "part.py").write_text("x = 1\n")
    (tmp_path / "own_deep.py").write_text("")
    files = package_files("own_outer.inner.part", inner / "part.py")
    packages = ["own_outer.inner", "own_outer"]
    assert list(files) == ["own_outer.inner.part", *packages, "own_deep"]
    assert list(package_files(packages[0], inner / "__init__.py")) == [*packages, "own_deep"]


@pytest.mark.thorough  # it imports all papers
def test_what_an_import_of_each_claim_reads_is_in_the_digest_of_its_file():
    left_out = []
    for claim in {claim.place[0]: claim for claim in find_claims(())}.values():
        path = Path(claim.place[0])
        name, folder = dotted_name(path)
        files = set(package_files(name, path).values())
        packages = {parent / "__init__.py" for parent in path.parents if folder in parent.parents}
        left_out += [(name, str(file)) for file in packages - files]
    assert not left_out


def test_decorated_functions_are_told_with_their_lines(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("@a\ndef f(): ...\n\ndef g(): ...\n\n@b\ndef f(): ...\n")
    assert list(functions_defined(file)) == [("f", f"{file}:1"), ("f", f"{file}:6")]


def test_data_is_added_for_ones_own_modules_alone(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("")
    assert with_data({"m": file}) == {"m": file}
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\ndata = ['*.csv']\n")
    (tmp_path / "x.csv").write_text("")
    whole = {"m": file, "data:x.csv": tmp_path / "x.csv"}
    assert with_data({"m": file}) == whole
    (tmp_path / "x.csv").rename(tmp_path / "y.csv")
    assert list(with_data(whole)) == ["m", "data:y.csv"]
    assert with_data({}) == {}


def test_data_that_is_too_large_to_be_hashed_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "m.py"
    file.write_text("")
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\ndata = ['*.csv']\n")
    (tmp_path / "x.csv").write_text("12345")
    monkeypatch.setattr("attlas.projects.source.MOST_BYTES", 4)
    with pytest.raises(UserError, match=r"x\.csv has 5 bytes: data of a project has at most 4"):
        with_data({"m": file})


def test_imports_inside_every_kind_of_statement_are_found(tmp_path):
    file = tmp_path / "own_statements.py"
    file.write_text(
        "if 1:\n    import a\nelif 2:\n    import b\nelse:\n    import c\n"
        "try:\n    import d\nexcept E:\n    import e\nelse:\n    import f\nfinally:\n    import g\n"
        "for x in y:\n    import h\nelse:\n    import i\n"
        "with x:\n    def one():\n        class Two:\n            from j import k\n"
        "match x:\n    case 1:\n        import l\n"
        "async def three():\n    async with x:\n        while 1:\n            import m\n"
    )
    assert set(imported(file, "")) == {*"abcdefghijlm", "j.k"}
