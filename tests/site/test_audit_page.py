"""The page of an audit: nothing of it is a script, whatever names and numbers an audit holds."""

import copy
import json
import re
from urllib.parse import unquote

import pytest
from headless_browser import browser

from attlas.experiments.schema import violations
from attlas.site.audit_page import render_audit
from attlas.site.folder import write_pages

EVIL = "<script>alert('a')</script><img src=x onerror=alert(1)>"
NAMES = ("ball_certificate", "ball_attack", "qk_norm", "michel_score", "removal_zero")
CLAIMED = ("proved", "checked on instances", "heuristic", "not claimed")


def made(level="deep", value=1.5):
    return {
        "schema": "attlas/audit/1",
        "model": {
            "name": "small",
            "architecture": "gpt2",
            "layers": 2,
            "heads per layer": 2,
            "parameters": 123456,
        },
        "level": level,
        "notes": ["A note."],
        "quantities": {
            name: {"title": f"title of {name}", "formula": "$x^2$", "standing": "proved"}
            | {"meaning": "large", "null": ""}
            for name in NAMES
        }
        | {"qk_norm_low": {"of": "qk_norm"}},
        "heads": [
            {"layer": layer, "head": head, **dict.fromkeys(NAMES, value)}
            for layer in range(2)
            for head in range(2)
        ],
        "depths": [{"depth": k, "residual_l2": value, "mean_cosine": value} for k in range(3)],
        "bounds": [
            {
                "name": "bits",
                "gap": value,
                "vacuous": True,
                "samples_until_nonvacuous": value,
                "about": "the model",
            }
        ],
        "curves": [{"step": k, **_curve(value)} for k in range(2)],
        "findings": [
            {
                "sentence": "Head 0.1 stands out",
                "evidence": "It was replaced",
                "layer": 0,
                "head": 1,
                "quantity": "qk_norm",
                "strength": value,
                "action": "Keep it",
                "effect": "The loss rises",
                "consequence": value,
                "kind": "observation",
            }
        ],
        "further": [],
        "facts": {"rank_correlation": value, "loss": value},
        "standings": {key: [f"{key} title"] for key in CLAIMED},
    }


def _curve(value):
    return {f"qk_norm_{part}": value for part in ("least", "median", "largest")}


def poisoned(value):
    """Every text of the audit but the names of its fields is hostile."""
    if isinstance(value, dict):
        return {key: poisoned(each) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each) for each in value]
    return f"{EVIL} {value}" if isinstance(value, str) else value


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


def test_the_page_holds_findings_figures_tables_and_data():
    assert violations(made(), "audit") == ()
    page = render_audit(made())
    assert "Head 0.1 stands out" in page
    assert "123" in page
    assert "proved title" in page
    assert page.count("<figure>") == 4
    assert len(data_of(page)["heads"]) == 4
    assert "src=" not in page.replace('src="data:', "")
    assert "http-equiv" in page
    assert {each["name"] for each in data_of(page)["quantities"]} == set(NAMES)


def test_what_is_found_besides_can_be_unfolded():
    found = made()
    assert "further observation" not in render_audit(found)
    page = render_audit(found | {"further": [found["findings"][0] | {"sentence": "Besides"}]})
    assert "<summary>1 further observation</summary>" in page
    assert page.index("Head 0.1 stands out") < page.index("<summary>") < page.index("Besides.")
    assert "Keep it." in page
    assert "The loss rises." in page


def test_the_title_is_the_name_of_the_model_and_findings_come_first():
    found = made()
    found["model"] = {**found["model"], "name": "tiny (encoder; the decoder is not read)"}
    page = render_audit(found)
    assert '<h1 class="model">tiny</h1>' in page
    assert "<title>tiny (encoder; the decoder is not read): attlas audit</title>" in page
    places = [page.index(f'<h2 id="{name}">') for name in ("findings", "map", "table", "model")]
    assert places == sorted(places)
    assert page.index("<h1") < places[0] < page.index('<dl class="facts')


def test_no_text_becomes_a_script():
    found = poisoned(made())
    found |= {"schema": "attlas/audit/1", "level": "deep"}
    page = render_audit(found)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 2  # the data and the page's own
    assert page.count("</script>") == 2
    assert "&lt;script&gt;" in page


def test_names_of_quantities_and_of_facts_are_text_too():
    found = made()
    found["facts"] = {EVIL: 1.0}
    found["model"][EVIL] = 3
    found["quantities"][EVIL] = found["quantities"]["qk_norm"]
    for row in found["heads"]:
        row[EVIL] = 1.0
    page = render_audit(found)
    assert page.count("<script") == 2
    assert "<img src=x" not in page


def test_an_interval_stands_beside_its_number():
    found = made()
    found["facts"] = {"loss": 2.5, "loss_low": 2.0, "loss_high": 3.0, "drift": 1e-7}
    page = render_audit(found)
    assert "<dd>2.5 [2, 3]</dd>" in page
    assert "loss_low" not in page
    assert "10<sup>−7</sup>" in page


def test_a_loss_has_its_own_unit_and_a_threshold_its_formula():
    found = made()
    found["facts"] = {"loss": 0.0, "loss_low": 0.0, "loss_high": 0.0, "threshold": 3.8}
    assert "nats" not in render_audit(found)  # an audit of before units were kept
    words = {"loss_unit": "squared state lengths", "threshold_formula": "2 (1 + momentum)"}
    found["facts"] |= words | {"optimizer": "sgd", "lazy": "no", "rank_correlation": 0.5}
    found["quantities"]["removal_zero"]["unit"] = "squared state lengths"
    assert violations(found, "audit") == ()
    page = render_audit(found)
    for said in (
        "<dd>0 [0, 0] squared state lengths</dd>",
        "<dd>3.8 = 2 (1 + momentum)</dd>",
        "<dt>optimizer</dt><dd>sgd</dd>",
        "<dt>training was lazy</dt><dd>no</dd>",
    ):
        assert said in page
    assert "loss_unit" not in page
    assert "nats" not in page
    (told,) = (each for each in data_of(page)["quantities"] if each["name"] == "removal_zero")
    assert told["unit"] == "squared state lengths"


def test_words_among_the_facts_are_no_script():
    found = made()
    found["facts"] = {"loss": 1.0, "loss_unit": EVIL, "optimizer": EVIL}
    page = render_audit(found)
    assert page.count("<script") == 2
    assert "<img src=x" not in page


def test_names_of_bounds_are_typeset():
    found = made()
    names = ("1,inf sharp", "mixed sharp", "parameters", "bits of the file")
    found["bounds"] = [{**found["bounds"][0], "name": name} for name in names]
    page = render_audit(found)
    assert "1,inf" not in page
    assert "<mi>∞</mi>" in page
    for said in ("sharp constants", "smallest cover of each matrix", "number of parameters"):
        assert said in page
    assert "bits of the file" in page


def test_a_quantity_without_any_number_is_not_offered():
    found = made()
    for row in found["heads"]:
        row["qk_norm"] = None
    page = render_audit(found)
    offered = {each["name"] for each in data_of(page)["quantities"]}
    assert offered == set(NAMES) - {"qk_norm"}
    assert "query-key norm</button>" not in page
    assert "query-key norm</button>" in render_audit(made())
    for row in found["heads"]:
        row["michel_score"] = None
    assert render_audit(found).count("<figure>") == page.count("<figure>") - 1


@pytest.mark.parametrize("value", [None, 0.0, -1.0, 1e300])
def test_missing_and_extreme_numbers_are_drawn(value):
    page = render_audit(made(value=value))
    assert "<h1" in page
    assert "nan" not in json.dumps(data_of(page))
    assert value is not None or "–</td>" in page


def test_rows_that_lack_a_number_have_none():
    found = made()
    del found["heads"][2]["qk_norm"], found["curves"][1]["qk_norm_least"]
    assert render_audit(found).count("–</td>") == 1


def test_level_weights_has_no_findings_and_says_why():
    found = made("weights") | {"findings": [], "depths": [], "curves": [], "bounds": []}
    page = render_audit(found)
    assert "needs a test on sequences" in page
    assert 'id="bounds"' not in page
    assert "--tokens" in page
    pictures = copy.deepcopy(found)
    pictures["model"]["words"] = 0
    assert "or on images (<code>--images</code>)" in render_audit(pictures)
    quiet = copy.deepcopy(found) | {"level": "data"}
    assert "Nothing stands out" in render_audit(quiet)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A browser, and the page of numbers that differ from head to head."""
    found = made()
    for place, row in enumerate(found["heads"]):
        row["qk_norm"] = [3.0, 1.0, 4.0, 2e-7][place]
    file = tmp_path_factory.mktemp("audit") / "audit.html"
    file.write_text(render_audit(found))
    with browser() as page:
        yield page, file


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_says_nothing_to_the_console(shown, width, scheme):
    page, file = shown
    page.open(file, width, prefers_color_scheme=scheme)
    assert page.messages() == []
    assert page.run("return document.documentElement.scrollWidth") <= width
    wide = page.run(
        "return [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll') "
        "&& e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML)"
    )
    assert wide == []


@pytest.mark.thorough
def test_the_map_tells_what_it_shows_and_a_click_fills_the_card(shown):
    page, file = shown
    page.open(file)
    page.run(
        "const s = document.getElementById('quantity'); s.value = 'qk_norm';"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.settle()
    cells = "[...document.querySelectorAll('#heat button')]"
    assert page.run(f"return {cells}.length") == 4
    sizes = page.run(f"return {cells}.map(e => e.getBoundingClientRect().width)")
    assert sizes[:2] == sizes[2:]  # a column is as wide as its widest number
    # title, formula and meaning are three things
    assert page.text("meaning").startswith("title of qk_norm: ")
    assert "; large. proved" in page.text("meaning")
    page.run(f"{cells}[1].click()")
    assert page.text("card").startswith("Head 0.1")
    assert "title of qk_norm1" in page.text("card")
    # the least value last, when its column is sorted downwards
    page.run("document.querySelector('#heads thead th:last-child button').click()")
    assert page.run("return document.querySelector('#heads tbody').lastElementChild.innerText")[
        :3
    ] == ("1.1")


@pytest.mark.thorough
def test_a_sign_is_shown_only_where_it_is_certain(tmp_path):
    found = made()
    for place, row in enumerate(found["heads"]):
        row |= {"qk_norm": -0.5, "qk_norm_low": -1.0, "qk_norm_sign": 0 if place else -1}
        row |= {"qk_norm_high": 0.25 if place else -0.25, "qk_norm_before": 7.0}
    found["quantities"]["qk_norm"]["unit"] = "nats"
    file = tmp_path / "audit.html"
    file.write_text(render_audit(found))
    with browser() as page:
        page.open(file)
        page.run(
            "const s = document.getElementById('quantity'); s.value = 'qk_norm';"
            "s.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        page.settle()
        cells = "[...document.querySelectorAll('#heat button')]"
        shown = page.run(f"return {cells}.map(e => e.textContent)")
        assert shown == ["\u22120.5", "sign?", "sign?", "sign?"]
        assert "[\u22121, 0.25]" in page.run(f"return {cells}[1].getAttribute('aria-label')")
        assert "sign not certain" in page.text("meaning")
        assert "In nats." in page.text("meaning")
        page.run(f"{cells}[1].click()")
        card = page.text("card")
        assert "sign not certain [\u22121, 0.25]" in card
        assert "at the earlier checkpoint 7" in card
        page.run(f"{cells}[0].click()")
        assert "\u22120.5 [\u22121, \u22120.25]" in page.text("card")


def test_a_bar_leads_back_to_an_atlas_that_lies_beside_the_page_and_to_no_other(tmp_path):
    assert 'aria-label="Site"' not in render_audit(made(), tmp_path)
    front = tmp_path / "my atlas.html"
    pages = [("explorer.html", "explorer"), ("", "front")]
    write_pages(front, front.with_suffix(""), pages)
    page = render_audit(made(), tmp_path)
    bar = re.search(r'(?s)<nav class="site".*?</nav>', page)
    assert bar
    links = re.findall(r'href="([^"]*)"', bar[0])
    assert [link.partition("#")[2] for link in links] == ["top", "top", "", "search"]
    for link in links:
        assert (tmp_path / unquote(link.partition("#")[0])).is_file(), link
    assert "Gallery" not in bar[0]
