"""Claims are found by name and by place; what is wrong with a place is one line."""

import json

import pytest

from attlas.core.errors import UserError
from attlas.verify.registry import claims_of, find_claims, find_errata, one_claim

CLAIM = '''
import attlas as at
import jax.numpy as jnp

def pairs(rng, count):
    return {{"x": rng.normal(size=(count, 5)), "y": rng.normal(size=(count, 5))}}

@at.inequality(sample=pairs, controls=[at.Control("half", factor=0.5)])
def {name}(x, y, *, factor=1.0):
    r"""$$\\|x+y\\| \\le \\|x\\|+\\|y\\|$$"""
    norm = jnp.linalg.norm
    return norm(x + y), factor * (norm(x) + norm(y))
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory, left when the test ends, with the path of imports as before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def written(path, *names):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(CLAIM.format(name=name) for name in names))
    return path


def notebook(path, *cells):
    """A notebook of code cells, given as (source, tags)."""
    made = [
        {"cell_type": "code", "metadata": {"tags": tags}, "source": source.splitlines(True)}
        for source, tags in cells
    ]
    path.write_text(json.dumps({"nbformat": 4, "cells": made}))
    return path


def test_a_file_a_folder_a_module_and_one_object_are_places(folder):
    file = written(folder / "claims_one.py", "triangle", "second")
    (folder / "run_me.py").write_text("raise RuntimeError('not a file of claims')")
    names = ["claims_one/triangle", "claims_one/second"]
    assert [c.name for c in find_claims([str(file)])] == names
    assert [c.name for c in find_claims(["claims_one.py"])] == names
    assert [c.name for c in find_claims(["."])] == names
    assert [c.name for c in find_claims(["claims_one"])] == names
    (second,) = find_claims(["claims_one.py:second"])
    assert (second.name, second.home) == (names[1], str(file))
    assert find_claims(["claims_one:second"]) == (second,)
    (both, other) = find_claims(["lemma-12", "claims_one.py:triangle"])
    assert (both.home, other.name) == ("julistiono2024optimizing.lemma_12", names[0])


def test_a_package_is_scanned_and_relative_imports_work(folder):
    package = folder / "src" / "my_paper_package"
    written(package / "first.py", "one")
    (package / "__init__.py").write_text("")
    (package / "second.py").write_text("from .first import one, pairs\nALL = (one,)\n")
    by_name = find_claims(["my_paper_package"])
    assert [c.name for c in by_name] == ["first/one"]
    assert by_name[0].home == "my_paper_package.first"
    assert find_claims([str(package / "second.py")]) == by_name


def test_tagged_cells_of_a_notebook_share_a_namespace(folder):
    file = notebook(
        folder / "study.ipynb",
        ("raise RuntimeError('not tagged')", []),
        ("%matplotlib inline\nimport attlas", ["attlas"]),
        (CLAIM.format(name="triangle"), ["claims"]),
        ("assert triangle.name == 'study/triangle'", ["attlas"]),
    )
    (claim,) = find_claims(["study.ipynb"])
    assert (claim.name, claim.home) == ("study/triangle", str(file))
    assert claim.place == (f"{file}[cell 3]", 8)


def test_a_changed_file_is_loaded_again_and_an_unchanged_one_is_not(folder):
    written(folder / "lemmas.py", "base")
    file = folder / "claims_mine.py"
    file.write_text("from lemmas import base\n")
    (before,) = claims_of("claims_mine.py")
    assert claims_of("claims_mine.py")[0] is before
    written(folder / "lemmas.py", "base", "renamed_and_longer")
    assert claims_of("claims_mine.py")[0] is not before


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\n", "claims_bad.py defines no claim: decorate a function"),
        ("import attlas\n\nx = jmp.ones(3)\n", "claims_bad.py:3: NameError: name 'jmp' is not"),
        ("import attlas\nimport no_such_package\n", "claims_bad.py:2: No module named 'no_such"),
        ("import attlas\ndef f(:\n", "claims_bad.py:2: SyntaxError: invalid syntax"),
        ("import attlas\nimport sys\nsys.exit(3)\n", "claims_bad.py:3: it ends the process"),
        ("import json\njson.loads('{')\n", "claims_bad.py:2: JSONDecodeError: "),
        (
            CLAIM.format(name="one") + CLAIM.format(name="one"),
            "claims_bad.py:8 and claims_bad.py:20 both define 'one'",
        ),
        (
            'import attlas\n@attlas.inequality(sample=dict)\ndef f(x):\n    "x"\n',
            "claims_bad.py:2: claim 'claims_bad/f' has no control",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_with_its_place(folder, text, line):
    (folder / "claims_bad.py").write_text(text)
    with pytest.raises(UserError) as caught:
        find_claims(["claims_bad.py"])
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_an_error_in_an_imported_file_is_told_there(folder):
    (folder / "broken_lemmas.py").write_text("\n\n1 / 0\n")
    (folder / "claims_use.py").write_text("import attlas\nimport broken_lemmas\n")
    with pytest.raises(UserError, match=r"^broken_lemmas\.py:3: ZeroDivisionError: division"):
        find_claims(["claims_use.py"])


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("absent.py", "there is no file or folder 'absent.py'"),
        ("absent/", "there is no file or folder 'absent/'"),
        ("claims_two.py:absent", "defines no claim named 'absent': There are one"),
        ("claims_two.py:ome", "defines no claim named 'ome': did you mean one? There are one"),
        ("notes.txt", "notes.txt is neither a Python file nor a notebook"),
        ("empty", "has no file that imports attlas"),
        ("claims_x*.py", "no Python file matches 'claims_x*.py'"),
        ("bare.ipynb", "bare.ipynb has no cell tagged 'attlas'"),
        ("broken.ipynb", "broken.ipynb is no notebook of version 4"),
        ("no_module:x", "'no_module' is neither a file, a folder nor a module"),
        ("claims_twe", "there is no claim or paper 'claims_twe'"),
    ],
)
def test_what_is_wrong_with_a_place_is_one_line(folder, place, line):
    written(folder / "claims_two.py", "one")
    (folder / "notes.txt").write_text("")
    (folder / "empty").mkdir()
    notebook(folder / "bare.ipynb", ("x = 1", []))
    (folder / "broken.ipynb").write_text('{"worksheets": []}')
    with pytest.raises(UserError) as caught:
        find_claims([place])
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_files_with_a_claim_of_one_name_are_refused(folder):
    (folder / "pyproject.toml").write_text(
        '[tool.attlas]\nkey = "mine2026"\nclaims = ["claims_*.py"]\n'
    )
    written(folder / "claims_a.py", "triangle")
    written(folder / "claims_b.py", "triangle")
    with pytest.raises(UserError, match=r"claims_a\.py:8 and claims_b\.py:8 both define the claim"):
        find_claims()


def test_a_project_names_its_claims_and_their_paper(folder, monkeypatch):
    (folder / "pyproject.toml").write_text(
        '[tool.attlas]\ntitle = "On Triangles"\nclaims = ["claims_*.py"]\n'
    )
    written(folder / "claims_a.py", "triangle")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert [c.name for c in find_claims()] == ["on-triangles/triangle"]
    assert find_claims(["triangle"]) == find_claims(["on-triangles"]) == find_claims()
    assert len(find_claims(["lemma-12"])) == 1


def test_claims_of_the_environment_are_among_all(folder, monkeypatch):
    written(folder / "claims_a.py", "triangle")
    monkeypatch.setenv("ATTLAS_CLAIMS", "claims_a.py")
    assert "claims_a/triangle" in [c.name for c in find_claims()]
    assert len(find_claims(["triangle"])) == 1
    monkeypatch.setenv("ATTLAS_CLAIMS", "absent.py")
    with pytest.raises(UserError, match=r"^ATTLAS_CLAIMS names 'absent.py': there is no file"):
        find_claims()


def test_installed_packages_announce_their_claims(folder):
    written(folder / "announced_claims.py", "triangle")
    known = folder / "announced-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text("[attlas.claims]\nannounced = announced_claims\n")
    (claim,) = find_claims(["announced_claims/triangle"])
    assert claim.home == "announced_claims"


def test_errata_of_a_place(folder):
    (folder / "claims_e.py").write_text(
        "from attlas.claims.claim import Erratum, ErratumClass\n"
        "ONE = Erratum('a', 'Lemma 1', ErratumClass.TYPO, 'A digit.')\n"
    )
    assert [e.locator for e in find_errata(["claims_e.py"])] == ["Lemma 1"]


def test_one_claim_is_itself_or_what_its_name_means():
    (lemma,) = find_claims("lemma-12")
    assert one_claim(lemma) is one_claim("lemma-12") is lemma
    for given, line in [
        ("gu2024exploring", r"'gu2024exploring' names \d+ claims: choose one"),
        ([lemma], "a value of type list is no claim"),
        ("lema-12", "did you mean lemma-12"),
    ]:
        with pytest.raises(UserError, match=line):
            one_claim(given)
