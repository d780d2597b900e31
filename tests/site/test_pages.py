"""The pages of an atlas: each links to what is there, and the same records give the same pages."""

import re
from urllib.parse import unquote

import pytest

from attlas.site.atlas import gather
from attlas.site.content import Atlas
from attlas.site.pages import places_of, render_pages, render_single

SVG = "http://www.w3.org/2000/svg"
PAPER = "paper-julistiono2024optimizing.html"
PRINTED = "https://arxiv.org/abs/2410.14581"


@pytest.fixture
def atlas(store, claims, errata, experiments):
    return gather(store, claims, errata, experiments)


@pytest.fixture
def pages(atlas):
    return dict(render_pages(atlas, "my atlas.html", "my atlas"))


def test_a_page_per_paper_and_per_experiment_and_the_front_page_last(pages):
    assert [name for name in pages if not name.endswith(".csv")] == [
        "glossary.html", PAPER, "experiment-lines.html", "experiment-silent.html", "gallery.html",
        "",
    ]  # fmt: skip


def test_a_page_of_ones_own_claims_has_their_title_and_no_more_than_they_ask(atlas, pages):
    assert atlas.title == atlas.papers[0].heading
    assert atlas.questions == ()
    assert f"<h1>{atlas.title}</h1>" in pages[""]
    assert "explorer" not in pages[""]
    assert "The executable atlas" in dict(render_pages(Atlas(papers=()), "a.html", "a"))[""]


def test_every_link_arrives(pages):
    places = {("my atlas/" if name else "") + (name or "my atlas.html"): text
              for name, text in pages.items()}  # fmt: skip
    names = {place: set(re.findall(r'\sid="([^"]+)"', text)) for place, text in places.items()}
    for place, text in places.items():
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', text):
            if "papers/" in link or "tests/" in link or link == PRINTED:
                continue
            file, _, fragment = link.partition("#")
            folder = "my atlas/" if "/" in place else ""
            target = place if not file else unquote(file).removeprefix("./")
            if file.startswith("../"):
                target = unquote(file).removeprefix("../")
            elif file and folder:
                target = folder + unquote(file)
            assert target in places, link
            assert not fragment or fragment == "search" or fragment in names[target], link
        assert len(names[place]) == len(re.findall(r'\sid="([^"]+)"', text))


def test_the_front_page_counts_strengths_and_leads_to_the_loose_claims(pages):
    table = pages[""].split("How sharply")[1].split("</table>")[0]
    cells = re.findall(r'<td class="num[^"]*">(.*?)</td>', table)
    link = f'<a href="./my%20atlas/{PAPER}#paper-julistiono2024optimizing-loose">1</a>'
    # proved, attained, tested, consistent, vacuous, no constant; what is unexpected holds nothing
    assert cells == ["0", "0", "0", link, "0", "2"]
    loose = pages[PAPER].split("Claims that are consistent or vacuous")[1].split("</details>")[0]
    assert re.findall(r'href="(.*?)"', loose) == ["#claim-julistiono2024optimizing-plain"]
    assert "best ratio 0.25" in loose


def test_old_fragments_are_those_of_the_pages(atlas):
    places = places_of(atlas)
    assert places["claim-julistiono2024optimizing-plain"] == PAPER
    assert places["experiment-lines"] == "experiment-lines.html"
    (drawing,) = atlas.experiments[0].drawings
    assert places[drawing.anchor] == "experiment-lines.html"
    assert f'id="{drawing.anchor}"' in render_single(atlas)


def test_no_page_loads_anything_or_says_where_the_machine_keeps_it(pages, tmp_path):
    for text in pages.values():
        assert not re.search(r'<(?:link|iframe|base)\b|\ssrc="(?!data:)|\son\w+="|\sstyle="', text)
        # The name of SVG, which the explorer draws with, is no address that is opened.
        # And a link to the printed paper loads nothing before it is followed.
        shown = text.replace(f'<a href="{PRINTED}">', "").replace("http-equiv", "")
        assert "http" not in re.sub(r"<pre.*?</pre>", "", shown.replace(SVG, ""), flags=re.S)
        assert str(tmp_path) not in text


def test_the_same_records_give_the_same_pages(atlas, pages):
    assert dict(render_pages(atlas, "my atlas.html", "my atlas")) == pages


def test_an_empty_atlas_has_a_front_page():
    pages = dict(render_pages(Atlas(papers=()), "atlas.html", "atlas"))
    assert "There are no records" in pages[""]
    assert "No counterexample" in pages[""]
