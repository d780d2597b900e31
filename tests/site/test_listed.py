"""What sources declare is what their code defines, and what they do not say is named."""

import pytest

from attlas.core.errors import UserError
from attlas.projects.declared import declared
from attlas.projects.installed import installed_papers
from attlas.projects.places import read_place
from attlas.site.listed import COMPUTED, declared_claim, list_declared, list_named
from attlas.verify.registry import find_claims

LOOP = "julistiono2024optimizing/convergence.py"
"""It unpacks decorators from a generator, which only running shows."""
NAMES = """
from functools import partial
from attlas import *
import attlas.claims.statement as s
from attlas.experiments import experiment
from helpers import COMMON, on_paths as paths, imported_lemma
import helpers
STATUS = Status.NEW
mine = partial(inequality, source=Source.FOUND)

@mine("Lemma 1", status=STATUS, search_over=["a", "b"])
def first(a, b): "One."

@s.computed(Kind.IDENTITY, locator=f"Lemma {2}")
def second(rng, count): "Two."

@paths(2)("Lemma 3", not_attacked="it is one instance")
def third_(a): "Three."

@helpers.COMMON("Lemma 4", source=Source.RECALLED)
def fourth(a): "Four."

@s.erratum("Lemma 5", Source.RECALLED, of=Kind.EXISTENCE)
def fifth(a): "Five."

@mine("Lemma 6", status=chosen())
def sixth(a): "Six."

@other("Lemma 7")
def seventh(a): "Seven."

SUM = experiment.Experiment(name="sum", question="Is it \\n two?\\n\\nMore.", paper="doe")
LIST = [mine(str(i))(f) for i, f in enumerate(FUNCTIONS)]
if True:
    @inequality("Lemma 8")
    def eighth(a): "Eight."
"""
HELPERS = """
import functools
from attlas.claims import statement
COMMON = functools.partial(statement.limit, count=3)
def on_paths(n):
    "Not a claim."
    return functools.partial(statement.inequality, count=n)
@COMMON("Lemma 9")
def imported_lemma(a): "Nine."
"""


@pytest.mark.parametrize("paper", installed_papers(), ids=lambda paper: paper.key)
def test_sources_of_papers_declare_what_their_code_defines(paper):
    places = [read_place(text, paper.project.root) for text in paper.project.claims_or_folder]
    shown = {claim.place: claim for claim in list_declared(places)[0].claims}
    defined = {
        claim.place: claim for claim in find_claims([paper.key]) if LOOP not in claim.place[0]
    }
    assert shown.keys() == defined.keys()
    for place, claim in defined.items():
        here = shown[place]
        assert (here.name, here.paper, here.source, here.status, here.kind) == (
            *(claim.name, claim.paper, claim.source, claim.status),
            str(claim.kind),
        )
        assert here.locator in (claim.locator, COMPUTED)
        if here.attacked not in ("-", "the default", COMPUTED) and claim.search_over:
            assert here.attacked == ", ".join(claim.search_over)
    unread = declared(places).unread
    assert all(LOOP in file for file, _ in unread)
    assert bool(unread) is (paper.key in LOOP)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims_names.py").write_text(NAMES)
    (tmp_path / "helpers.py").write_text(HELPERS)
    return tmp_path


def test_names_partials_and_imports_are_followed_and_nothing_runs(folder):
    shown = list_named(["claims_names.py"])
    rows = {
        c.name.partition("/")[2]: (c.kind, c.locator, c.source.name, c.status.name, c.attacked)
        for c in shown.claims
    }
    assert rows == {
        "first": ("inequality", "Lemma 1", "FOUND", "NEW", "a, b"),
        "second": ("identity", COMPUTED, "DERIVED", "NEW", "-"),
        "third": ("inequality", "Lemma 3", "DERIVED", "NEW", "not attacked: it is one instance"),
        "fourth": ("limit", "Lemma 4", "RECALLED", "NEW", "the default"),
        "fifth": ("existence", "Lemma 5", "RECALLED", "SUSPECTED_ERRATUM", rows["fifth"][-1]),
        "imported-lemma": ("limit", "Lemma 9", "DERIVED", "NEW", "the default"),
    }
    assert [(e.name, e.paper, e.question) for e in shown.experiments] == [
        ("sum", "doe", "Is it two?")
    ]


def test_what_only_running_shows_is_named_by_line(folder):
    lines = NAMES.splitlines()
    wanted = [
        1 + next(i for i, line in enumerate(lines) if text in line)
        for text in ("chosen()", "LIST =", '@inequality("Lemma 8")')
    ]
    notes = list_named(["claims_names.py"]).notes
    assert [note.partition(" ")[0] for note in notes] == [
        f"claims_names.py:{line}" for line in wanted
    ]
    assert all("`attlas check claims_names.py` runs it" in note for note in notes)


def test_one_name_of_a_place_is_listed_alone(folder):
    (claim,) = list_named(["claims_names.py:fourth"]).claims
    assert claim.locator == "Lemma 4"
    assert declared_claim(declared(["claims_names.py:sixth"]).claims[0]) is None


def test_a_place_without_claims_is_refused(folder):
    (folder / "empty.py").write_text("x = 1\n")
    with pytest.raises(UserError, match=r"empty\.py declares no claim and no experiment"):
        list_named(["empty.py"])
