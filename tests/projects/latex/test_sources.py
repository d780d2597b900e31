"""Sources of a paper: a folder, a file or an archive, and nothing outside of it."""

import io
import tarfile
import zipfile

import pytest
from projects.latex import sample_paper

from attlas.core.errors import UserError
from attlas.projects.latex.sources import read_sources
from attlas.projects.latex.statements import read_paper


def archive(folder, kind):
    file = folder / f"paper.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as packed:
            for path in sorted((folder / "paper").rglob("*.tex")):
                packed.write(path, path.relative_to(folder / "paper"))
    else:
        with tarfile.open(file, "w:gz") as packed:
            packed.add(folder / "paper", ".")
    return file


@pytest.mark.parametrize("kind", ["tar.gz", "tgz", "zip"])
def test_an_archive_holds_the_same_statements_as_its_folder(tmp_path, kind):
    main = sample_paper.write(tmp_path / "paper")
    read = read_paper(archive(tmp_path, kind))
    assert read.statements == read_paper(main).statements == read_paper(main.parent).statements


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret", "a/../../secret", "~/secret", "link", "x#1"]
)
def test_nothing_outside_the_folder_is_read(tmp_path, name):
    (tmp_path / "secret.tex").write_text("SECRET")
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "link.tex").symlink_to(tmp_path / "secret.tex")
    (folder / "main.tex").write_text(f"\\begin{{document}}\\input{{{name}}}")
    document = read_sources(folder / "main.tex")
    assert "SECRET" not in document.text
    assert len(document.notes) in (1, 2)


def test_files_that_input_themselves_end(tmp_path):
    (tmp_path / "main.tex").write_text("\\input{main} a \\input{b}")
    (tmp_path / "b.tex").write_text("\\input{main} b")
    document = read_sources(tmp_path / "main.tex")
    assert (document.text.split(), len(document.notes)) == (["a", "b"], 2)


@pytest.mark.parametrize(
    ("names", "said"),
    [((), "no .tex file"), (("a.tex", "b.tex"), "holds 2 papers"), (("a.tex", "main.tex"), "")],
)
def test_the_main_file_of_a_folder(tmp_path, names, said):
    for name in names:
        (tmp_path / name).write_text("\\documentclass{article}\\begin{document}")
    if not said:
        assert read_sources(tmp_path).main == "main.tex"
        return
    with pytest.raises(UserError, match=said):
        read_sources(tmp_path)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip", "a.gz", "a.tar"])
def test_a_damaged_archive_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04 and \x1f\x8b nothing")
    with pytest.raises(UserError, match=r"no archive|no \.tex file"):
        read_sources(tmp_path / name)


def test_an_archive_of_zeros_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        for number in range(3):
            member = tarfile.TarInfo(f"{number}.tex")
            member.size = 3_000_000
            packed.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(UserError, match="holds more than"):
        read_sources(tmp_path / "a.tar.gz")


@pytest.mark.parametrize(
    ("head", "file"),
    [
        (r"\documentclass[a4]{article}\usepackage[x]{amsmath, mine}", "mine.sty"),
        (r"\documentclass{mine}", "mine.cls"),
        (r"\documentstyle[11pt,mine]{report}", "mine.sty"),
    ],
)
def test_a_style_in_the_folder_is_read(tmp_path, head, file):
    declared = r"\newtheorem{lem}{Lemma}\RequirePackage{mine}" "\n\\endinput \\begin{lem}"
    (tmp_path / file).write_text(declared)
    body = r"\begin{document}\includegraphics[width=1cm]{a}\begin{lem} $x$ \end{lem}\end{document}"
    (tmp_path / "only.tex").write_text(head + body)
    paper = read_paper(tmp_path)
    assert [each.locator for each in paper.statements] == ["Lemma 1"]
    assert paper.notes == ()
