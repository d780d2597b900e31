"""What `[tool.attlas]` says, and what is wrong with it in one line."""

import os

import pytest

from attlas.core.errors import UserError
from attlas.projects.project import paper_of, project_of
from attlas.projects.references import read_references

WHOLE = """
[tool.attlas]
key = "doe2026tokens"
title = "On  tokens"
claims = ["claims_*.py", "study.ipynb"]
experiments = ["experiments/decay.py"]
references = "refs.bib"
"""
ENTRY = "@misc{doe2026tokens,\n  title = {On Tokens},\n  author = {Doe, Jo},\n  year = {2026},\n}\n"


def test_the_nearest_project_upwards_is_read(tmp_path):
    (tmp_path / "pyproject.toml").write_text(WHOLE)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    (tmp_path / "refs.bib").write_text(ENTRY)
    project = project_of(below)
    assert project is not None
    assert (project.root, project.key, project.title) == (tmp_path, "doe2026tokens", "On tokens")
    assert project.claims == ("claims_*.py", "study.ipynb")
    assert project.experiments == ("experiments/decay.py",)
    assert project.data == ()
    assert project.bibliography()["doe2026tokens"].year == 2026


def test_a_project_that_changes_with_equal_size_and_time_is_read_again(tmp_path):
    file = tmp_path / "pyproject.toml"
    for key in ("one", "two"):
        file.write_text(f"[tool.attlas]\nkey = '{key}'\n")
        os.utime(file, ns=(10**18, 10**18))
        project = project_of(tmp_path)
        assert project is not None
        assert project.key == key


def test_a_paper_is_the_key_or_the_title_or_the_file(tmp_path):
    file = tmp_path / "lemmas.py"
    file.write_text("")
    assert paper_of(str(file)) == "lemmas"
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.attlas]\ntitle = "How smooth is attention?"\n')
    assert paper_of(str(file)) == paper_of(f"{tmp_path}/lemmas.py[cell 3]")
    assert paper_of(str(file)) == "how-smooth-is-attention"
    settings.write_text('[tool.attlas]\ntitle = "x"\nkey = "castin2024"\n')
    assert paper_of(str(file)) == "castin2024"
    assert paper_of(str(tmp_path / "absent.py")) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.attlas]\nclaim = []", "has 'claim', did you mean claims? There are"),
        ("[tool.attlas]\nclaims = 'x.py'", "claims = 'x.py' is no list of texts"),
        ("[tool.attlas]\nclaims = [1]", r"claims = [1] is no list of texts"),
        ("[tool.attlas]\ndata = 'a.csv'", "data = 'a.csv' is no list of texts"),
        ("[tool.attlas]\ntitle = 3", "title = 3 is no text"),
        ("[tool.attlas]\nkey = 'a b'", "key = 'a b': use letters"),
        ("[tool]\nattlas = 3", "is not a table"),
        ("[tool.attlas", "cannot be read"),
    ],
)
def test_what_is_wrong_with_the_table_is_one_line(tmp_path, text, said):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        project_of(tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_references_that_cannot_be_read_are_one_line(tmp_path):
    file = tmp_path / "refs.bib"
    file.write_text(ENTRY + ENTRY)
    with pytest.raises(UserError, match=r"cannot be read as BibTeX .*comes twice"):
        read_references(file)
    with pytest.raises(UserError, match="is not a regular file"):
        read_references(tmp_path)


def test_data_files_are_named_by_patterns_that_match(tmp_path):
    (tmp_path / "tables").mkdir()
    for name in ("tables/b.csv", "tables/a.csv", "tables/note.txt", "one.npy"):
        (tmp_path / name).write_text("1\n")
    settings = tmp_path / "pyproject.toml"

    def files(text):
        settings.write_text(f"[tool.attlas]\ndata = [{text}]\n")
        project = project_of(tmp_path)
        assert project is not None
        return project.data_files()

    found = files('"tables/*.csv", "one.npy", "tables/a.csv"')
    assert list(found) == ["one.npy", "tables/a.csv", "tables/b.csv"]
    assert found["one.npy"] == tmp_path / "one.npy"
    with pytest.raises(UserError, match=r"data = \['tables/\*\.scv'\] matches no file"):
        files('"tables/*.scv"')
    with pytest.raises(UserError, match="write a pattern relative to this file"):
        files(f'"{tmp_path}/one.npy"')
    with pytest.raises(UserError, match="write a pattern relative to this file"):
        files('""')
