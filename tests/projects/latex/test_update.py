"""A paper's LaTeX changes: stubs follow, the author's files change on request alone."""

import pytest

from attlas.core.errors import UserError
from attlas.projects.latex.statements import read_paper
from attlas.projects.latex.stubs import stub_files
from attlas.projects.latex.update import renumbered_text, updated

HEAD = r"""
\documentclass{article}
\newtheorem{lemma}{Lemma}
\begin{document}
\section{Results}
"""
LEMMAS = {
    "a": r"\begin{lemma}\label{lem:a} $a \le 1$ \end{lemma}",
    "b": r"\begin{lemma}\label{lem:b} $b \le 1$ \end{lemma}",
    "c": r"\begin{lemma}\label{lem:c} $c \le 1$ \end{lemma}",
}
CLAIM = """import attlas as at


@at.inequality("Lemma 2 (upper bound)", sample=draw)
def second(b):
    return b, 1
"""


def paper(folder, *lemmas):
    folder.mkdir(exist_ok=True)
    (folder / "main.tex").write_text("\n".join([HEAD, *lemmas, r"\end{document}"]))
    return read_paper(folder / "main.tex")


@pytest.fixture
def project(tmp_path):
    """Three lemmas, of which the author has executed the second in place of its stub."""
    before = paper(tmp_path / "tex", *LEMMAS.values())
    folder = tmp_path / "project"
    folder.mkdir()
    ((name, text),) = stub_files(before).items()
    stubs = text.split("\n\n\n")
    assert len(stubs) == 4
    (folder / name).write_text("\n\n\n".join([stubs[0], stubs[1], stubs[3]]))
    (folder / "claims_mine.py").write_text(CLAIM)
    return folder, name, before.statements, tmp_path / "tex"


def test_nothing_changes_where_the_paper_did_not(project):
    folder, _, before, tex = project
    update = updated(folder, before, read_paper(tex / "main.tex"))
    assert (update.files, update.lines) == ({}, ())
    assert [s.reworded for s in update.statements] == ["", "", ""]


def test_new_and_removed_statements_touch_stubs_alone(project):
    folder, name, before, tex = project
    new = r"\begin{lemma}\label{lem:d} $d \le 1$ \end{lemma}"
    update = updated(folder, before, paper(tex, LEMMAS["a"], LEMMAS["b"], new))
    assert update.lines == (
        "Lemma 3 (lem:c) is gone from the sources",
        "Lemma 3 (lem:d) is new: it has a stub",
    )
    assert set(update.files) == {name, "claims_new_01_results.py"}
    assert "lem:c" not in update.files[name]
    assert '@todo("Lemma 1", label="lem:a"' in update.files[name]
    assert "def lemma_3():" in update.files["claims_new_01_results.py"]


def test_a_removed_statement_with_claims_keeps_them(project):
    folder, _, before, tex = project
    update = updated(folder, before, paper(tex, LEMMAS["a"]), renumber=True)
    assert "Lemma 2 (lem:b) is gone from the sources: its claims stay" in update.lines
    assert "claims_mine.py" not in update.files


def test_numbers_of_claims_are_written_on_request_alone(project):
    folder, name, before, tex = project
    after = paper(tex, r"\begin{lemma}\label{lem:d} $d$ \end{lemma}", *LEMMAS.values())
    with pytest.raises(UserError, match="add --renumber to write the new ones"):
        updated(folder, before, after)
    update = updated(folder, before, after, renumber=True)
    assert update.files["claims_mine.py"] == CLAIM.replace("Lemma 2 (", "Lemma 3 (")
    # Stubs have their own new numbers, and not those of the numbers which others had.
    for number, label in ((2, "a"), (4, "c")):
        assert f'@todo("Lemma {number}", label="lem:{label}"' in update.files[name]
    assert '@todo("Lemma 1", label="lem:d"' in update.files["claims_new_01_results.py"]


def test_stubs_that_were_renumbered_are_known_again(project):
    folder, name, before, tex = project
    first = paper(tex, r"\begin{lemma}\label{lem:d} $d$ \end{lemma}", *LEMMAS.values())
    update = updated(folder, before, first, renumber=True)
    for file, text in update.files.items():
        (folder / file).write_text(text)
    second = paper(tex, *LEMMAS.values())
    again = updated(folder, update.statements, second, renumber=True)
    assert again.files["claims_mine.py"] == CLAIM
    assert '@todo("Lemma 1", label="lem:a"' in again.files[name]
    assert "lem:d" not in again.files["claims_new_01_results.py"]


def test_a_reworded_statement_is_marked_where_it_was_written(project):
    folder, name, before, tex = project
    lemmas = [LEMMAS["a"], *(LEMMAS[k].replace("1$", "2$") for k in "bc")]
    update = updated(folder, before, paper(tex, *lemmas))
    assert set(update.files) == {name}
    assert r"$c \le 2$" in update.files[name]
    assert [s.reworded for s in update.statements] == ["", r"$b \le 1$", ""]
    assert [line.rpartition(": ")[2] for line in update.lines] == [
        "read it and mend its claims",
        "its stub has the new text",
    ]
    # The mark stays at the next update, with the first wording, and goes where that returns.
    (folder / name).write_text(update.files[name])
    thrice = [lemmas[0], lemmas[1].replace("2$", "3$"), lemmas[2]]
    later = updated(folder, update.statements, paper(tex, *thrice))
    assert [s.reworded for s in later.statements] == ["", r"$b \le 1$", ""]
    back = updated(folder, later.statements, paper(tex, lemmas[0], LEMMAS["b"], lemmas[2]))
    assert [s.reworded for s in back.statements] == ["", "", ""]


def test_an_update_that_was_interrupted_is_done_again(project):
    folder, name, before, tex = project
    lemmas = [LEMMAS["a"].replace("1$", "2$"), *list(LEMMAS.values())[1:]]
    after = paper(tex, *lemmas, r"\begin{lemma}\label{lem:d} $d$ \end{lemma}")
    update = updated(folder, before, after)
    assert set(update.files) == {name, "claims_new_01_results.py"}
    for file, text in update.files.items():
        (folder / file).write_text(text)
    again = updated(folder, before, after)
    assert again.files == {}
    assert again.statements == update.statements


def test_locators_change_all_at_once_and_nowhere_else():
    text = '@at.rate("Lemma 1", a="Lemma 1")\ndef f():\n    "Lemma 1"\n\n\n'
    text += '@computed(Kind.RATE, "Lemma 2, é")\ndef g(): ...\n\n\n@at.rate(locator="Lemma 21")\n'
    text += "def h(): ...\n"
    changed = renumbered_text(text, {"Lemma 1": "Lemma 2", "Lemma 2": "Lemma 1"})
    assert changed == text.replace('te("Lemma 1', 'te("Lemma 2').replace("2, é", "1, é")
    short = '@at.rate("Prop. 1 (ii)")\ndef h(): ...\n'
    assert renumbered_text(short, {"Proposition 1": "Proposition 2"}) == short.replace(
        "Prop. 1", "Proposition 2"
    )
    assert renumbered_text("def (", {"Lemma 1": "Lemma 2"}) == "def ("


def test_a_file_in_another_encoding_is_refused(project):
    folder, _, before, tex = project
    (folder / "latin.py").write_bytes(b"# \xe9\n")
    with pytest.raises(UserError, match=r"latin\.py is no text in UTF-8"):
        updated(folder, before, read_paper(tex / "main.tex"))
