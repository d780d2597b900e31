"""The page of one paper: whole, escaped, honest about what was refuted, without other papers."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Verdict,
)
from attlas.core.errors import UserError
from attlas.experiments.store import Store
from attlas.experiments.verdicts import write_report
from attlas.projects.references import parse_references
from attlas.site.atlas import gather
from attlas.site.paper import paper_page, render_paper, write_paper

BIBLIOGRAPHY = parse_references(
    "@misc{julistiono2024optimizing,\n  title = {Its title},\n  author = {Doe, Jo},\n"
    "  year = {2026},\n}\n"
)
WITNESS = {"x": np.array([1.5, -2.5])}
SHRUNK = ShrunkWitness("a/b", {"x": np.array([3.0, 0.0])}, (), "3.0", "2.0", "in 60 digits", 40)


@pytest.fixture
def page(store, claims, errata, experiments):
    """`plain` held on its instances and was broken by an attack."""
    broken = Verdict(Outcome.VIOLATED, "beyond", -1.0, 1.25, 64, 64, witness=WITNESS)
    control = ControlReport("sides exchanged", Outcome.VIOLATED, Verdict(Outcome.VIOLATED, "said"))
    held = Verdict(Outcome.SUPPORTED, "held", 0.5, 0.5, 64, 64)
    challenge = ChallengeReport(1.25, True, 8, 50, broken)
    report = CheckReport(
        claims[0].name, held, (control,), Outcome.SUPPORTED, challenge, shrunk=SHRUNK
    )
    write_report(store, report, claims[0])
    atlas = gather(Store(store.root), claims, errata, experiments, excerpt=True)
    return paper_page(atlas, "On <b> and $p$", BIBLIOGRAPHY)


def test_a_claim_that_an_attack_broke_is_not_called_supported(page):
    assert page.standing == "as reconstructed: 2 held, 2 with a counterexample, 2 open"
    broken = {each.title: each.claims for each in page.lists}["Has a counterexample"]
    assert [listed.entry.slug for listed in broken] == ["plain", "wrong"]
    rows = {entry.slug: row for entry, row in page.rows}
    assert (rows["plain"].verdict, rows["plain"].unexpected) == ("violated under attack", True)
    text = render_paper(page)
    card = text.split('id="claim-julistiono2024optimizing-plain"')[1].split("</article>")[0]
    assert "violated under attack" in card
    assert "✓" not in card.split("<details>")[0]
    assert "Counterexample of the attack" in card
    assert '<td class="num">1.5</td>' in card
    # The simpler instance came through the store, as a formula and as a line that evaluates it.
    assert "Counterexample, made simpler" in card
    assert "left 3.0, right 2.0; in 60 digits" in card
    assert "attlas.replay(&#34;a/b&#34;, {&#34;x&#34;: [3.0, 0.0]})" in card


def test_the_page_is_well_formed_escaped_and_loads_nothing(page):
    text = render_paper(page)
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:|papers/|tests/)', text)
    assert "On &lt;b&gt; and <math>" in text
    assert "<title>On &lt;b&gt; and p: its claims, checked</title>" in text
    assert "Doe, Jo · 2026" in text
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= set(names)
    # one root, every tag closed: the void ones and the doctype aside
    body = re.sub(r"<(meta|wbr|img|br)\b([^>]*?)/?>", r"<\1\2/>", text.split("-->")[-1])
    ElementTree.fromstring(re.sub(r"^\s*<!doctype html>", "", body).replace("&nbsp;", " "))


@pytest.mark.thorough
def test_the_ledger_is_a_waterfall(page):
    (chain,) = page.paper.chains
    assert chain.picture is not None
    assert "Lemma 0 1; Lemma 1 " in chain.picture
    assert str(chain.picture) in render_paper(page)


def test_a_paper_of_the_atlas_and_a_file_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims_own.py").write_text(
        "import attlas as at\n\n"
        "def draw(rng, count):\n    return {'x': rng.normal(size=(count, 2))}\n\n"
        "def claim(name):\n"
        "    @at.inequality(name, sample=draw, controls=[at.Control('twice', factor=2.0)])\n"
        "    def each(x, *, factor=1.0):\n"
        "        '''$$x \\\\le |x|$$'''\n"
        "        return factor * abs(x), abs(x)\n"
        "    return each\n\n"
        "theorem_2 = claim('Theorem 2')\n"
    )
    (tmp_path / "refs.bib").write_text(
        "@misc{claims_own,\n  title = {Own},\n  author = {Doe, Jo},\n  year = {2026},\n}\n"
    )
    out = write_paper(
        "nowhere", tmp_path / "own.html", "claims_own.py", references=tmp_path / "refs.bib"
    )
    text = out.read_text(encoding="utf-8")
    assert "<h1>Own</h1>" in text
    assert "1 open" in text
    assert str(tmp_path) not in text
    with pytest.raises(UserError, match="no claim"):
        write_paper("nowhere", out, "nothing-like-it")
    with pytest.raises(UserError, match=r"missing\.bib"):
        write_paper("nowhere", out, "claims_own.py", references=tmp_path / "missing.bib")
