"""Every number of README and of the findings is one that a file of results or a record holds."""

import json
import re
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.interleave import RESULTS
from benchmarks.mutants.judged import judgement
from benchmarks.page import benchmarks_page, peers_of, rounded, times_faster
from documentation_scripts import DOCS, documentation_script

import attlas as at
from attlas.claims.claim import ErratumClass
from attlas.experiments.find import find_experiments, one_named
from attlas.experiments.published import lines_of
from attlas.experiments.store import Store
from attlas.experiments.strengths import published_strengths, strengths_table
from attlas.verify.registry import find_errata

ROOT = Path(__file__).parents[1]
SMALL = 60_000
"""Bytes of a picture: README loads one."""
RESTS_ON = {
    "2410.14581": ("direction", "rates"),
    "2310.12680": ("heads",),
    "2405.03251": (),
    "2310.13088": ("sparse_majority",),
    "8KhxoxKP3iL": ("sample_complexity",),
}
"""The experiments that README's row of a paper quotes, by a piece of the paper's address."""
SPEED = {
    "one max-margin solution": (
        "svm_peers", "one problem, d = 20, 20000 constraints, p = 2", "DAQP",
    ),
    "100 attention models": (
        "selection_ensemble", "100 models, 2000 steps, p = 2, float64",
        "PyTorch batch, closed form",
    ),
    "101 trainings of a model": (
        "leave_one_out", "leave one out, n = 100, 100 steps, H = 4, T = 10, d = 10, float32",
        "JAX loop",
    ),
}  # fmt: skip
"""Where the rows of README's table of speed were measured."""
_WORDS = {"million": 1e6, "billion": 1e9, "trillion": 1e12}
_LARGE = re.compile(rf"(\d+(?:\.\d+)?) ({'|'.join(_WORDS)})")
_POWER = re.compile(r"(?:(\d+(?:\.\d+)?) ?(?:×|\\cdot|\\times) ?)?10\^\{?(\d+(?:\.\d+)?)\}?")
_NAMED = re.compile(r"(?:Theorem|Corollary|Lemma) \d+(?:\.\d+)*|W_K W_Q'")


@cache
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@cache
def findings() -> dict[str, str]:
    text = (DOCS / "log" / "findings.md").read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in text.split("\n## ")[1:]]
    return {title: body for title, _, body in sections}


@cache
def answer(experiment: str) -> str:
    found = one_named(experiment)
    return found.answered(at.load(found, results="published"))


@cache
def answer_values(experiment: str) -> Mapping[str, object]:
    """What the answer of the published record may print."""
    found = one_named(experiment)
    return found.answer(at.load(found, results="published")) if found.answer else {}


def held(experiment: str) -> set[float]:
    """The numbers of the answer and of its values."""
    return numbers(" ".join(map(str, (answer(experiment), *answer_values(experiment).values()))))


def by_size(experiment: str) -> list[dict[str, set[float]]]:
    """Of each value that lists several sizes, the numbers of each size."""
    listed = [
        re.findall(r"(?:^|; )((?:(?!; ).)*) \((\$n = \d+\$)\)", str(text))
        for text in answer_values(experiment).values()
    ]
    return [{size: numbers(text) for text, size in sizes} for sizes in listed if len(sizes) > 1]


pictures = partial(documentation_script, "pictures")


def row(benchmark: str, case: str, peer: str) -> Mapping[str, Any]:
    cases = json.loads((RESULTS / f"{benchmark}.json").read_text("utf-8"))["cases"]
    return next(dict(peers_of(c))[peer] for c in cases if c.get("case") == case)


def numbers(text: str) -> set[float]:
    """The numbers of a text without their signs; `4 × 10^14` is one."""
    text = _NAMED.sub("", re.sub(r"`[^`]*`|!?\[[^]]*\]\([^)]*\)", "", text)).replace("{,}", "")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)|(?<=\d) (?=\d{3}\b)", "", text)
    text = _POWER.sub(lambda m: f"{float(m[1] or 1) * 10 ** float(m[2]):.6e}", text)
    text = _LARGE.sub(lambda m: f"{float(m[1]) * _WORDS[m[2]]:.6e}", text)
    found = re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)
    return {float(f"{float(each):.6g}") for each in found}


def test_numbers_are_read_as_they_are_written():
    told = "Lemma 12 needs $1{,}000$ or 4 × 10^14, 4e+14 and $10^{2}$; -0.5 [0.25] of 1,158"
    assert numbers(told) == {1000, 4e14, 100, 0.5, 0.25, 1158}
    assert numbers("2.5 million of 350 trillion") == {2.5e6, 3.5e14}


def test_the_page_of_benchmarks_is_made_from_the_results():
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert page == benchmarks_page(), "run: python -m benchmarks.page docs/benchmarks.md"


def test_a_ratio_has_two_digits_and_its_range():
    assert times_faster({"ratio": 43.39, "ratio_range": [39.8, 44.6]}) == "43 (40 to 45)"
    assert times_faster({"ratio": 0.7, "ratio_range": [0.694, 1.26]}) == "0.70 (0.69 to 1.3)"
    assert [rounded(x) for x in (0, 3, 1234.0, 2e-7, 12_345)] == [
        "0", "3", "1,200", "2.0e-07", "12,345",
    ]  # fmt: skip


@pytest.mark.parametrize("told", SPEED)
def test_rows_of_speed_are_measured(told):
    measured = times_faster(row(*SPEED[told]))
    (line,) = [line for line in readme().splitlines() if line.startswith(f"| {told}")]
    assert line.split(" | ")[-1] == f"{measured} |"


def test_the_table_of_speed_has_no_other_rows():
    table = readme().partition("## Speed")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(SPEED)


def test_what_a_program_in_c_reaches():
    ratio = row("selection_ensemble", "100 models, 2000 steps, p = 2, float64", "C kernel")["ratio"]
    assert f"\n{1 / ratio:.1f} times faster than attlas" in readme()


def test_what_daqp_reaches_on_smaller_problems():
    fewer = row("svm_peers", "one problem, d = 20, 500 constraints, p = 2", "DAQP")["ratio"]
    many = row("svm_peers", "1000 problems, 42 constraints, 100 variables, p = 2", "DAQP")["ratio"]
    assert (
        f"With 500 constraints in place of 20,000 the first row is {fewer:.1f}, and with a "
        f"thousand problems of 42 constraints it is {many:.1f}."
    ) in readme()


def test_formulas_that_were_broken():
    rows = json.loads((RESULTS / "mutants.json").read_text("utf-8"))
    first, now = (sum(row[name] == "killed" for row in rows) for name in ("first", "result"))
    judged = sum(row["result"] != "killed" and bool(judgement(row["name"])) for row in rows)
    assert (
        f"We test the tests: we broke {len(rows):,} formulas of the code, drawn at random, one at "
        f"a time. The tests noticed {first:,} of the changes, and with the tests written since "
        f"{now:,}. "
        f"Of the other {len(rows) - now}, {judged} change no result."
    ) in readme()


def test_how_sharply_claims_were_tested():
    assert strengths_table(published_strengths()) in readme(), "run: make publish-strengths"


@pytest.mark.thorough
def test_how_many_experiments_are_published():
    cells = {e.name: lines_of(Store("published"), e)[0] for e in find_experiments()}
    partly = {name for name, line in cells.items() if len(set(line.split(" of "))) > 1}
    whole = len(cells) - len(partly)
    assert f"Of the {len(cells)} experiments, {whole} have been run in full" in readme()
    (line,) = [line for line in readme().splitlines() if line.startswith("- Of the")]
    named = dict(re.findall(r"`(\w+)` has (\d+ of \d+)", line))
    assert named == {name: cells[name] for name in partly}


@pytest.mark.parametrize("address", RESTS_ON)
def test_what_readme_says_of_a_paper_is_published(address):
    (line,) = [line for line in readme().splitlines() if f"{address})" in line]
    told = numbers(line.split(" | ")[2])
    held = set().union(*(numbers(answer(name)) for name in RESTS_ON[address]))
    assert told - held == set()


@pytest.mark.parametrize("title", findings())
def test_a_finding_rests_on_a_record_or_a_counterexample(title):
    told, _, source = findings()[title].rstrip().rpartition("\n")
    if refuted := re.fullmatch(r"\*Counterexample `(.+)`, log of November 2026\.\*", source):
        refutations = [e.claim for e in find_errata() if e.kind == ErratumClass.REFUTED]
        assert refuted[1] in refutations
        assert numbers(told) == set()
        return
    named = re.fullmatch(r"\*Experiment `(\w+)`, computed on ([\d-]+)\.\*", source)
    assert named, source
    name, day = named.groups()
    assert lines_of(Store("published"), one_named(name))[1].startswith(day)
    assert numbers(told) - held(name) == set()
    assert one_size_alone(told, name) == []


def one_size_alone(told: str, experiment: str) -> list[str]:
    """The sizes of a record that a text leaves out although it has the numbers of another size."""
    said, missing = numbers(told), []
    for sizes in by_size(experiment):
        common = set.intersection(*sizes.values())
        named = [size for size, printed in sizes.items() if said & (printed - common)]
        missing += [size for size, printed in sizes.items() if named and printed - said]
    return missing


def test_a_finding_that_gives_one_size_alone_is_refused():
    told = "The slope was -1.01 (-1.02 to -1.00), -2.00 and -2.73 (-3.01 to -2.44) at first."
    assert one_size_alone(told, "rates") == ["$n = 2$", "$n = 3$"]
    (sizes,) = by_size("rates")
    assert one_size_alone(" ".join(map(str, sizes["$n = 2$"])), "rates") == ["$n = 3$"]
    assert one_size_alone("It fell 1.7 to 350 times as far.", "rates") == []


def test_every_picture_stands_in_its_finding_or_in_a_guide():
    shown = {
        re.findall(r"\(\.\./pictures/(\w+)\.svg\)", body)[0]: body
        for body in findings().values()
        if "../pictures/" in body
    }
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "choose").glob("*.md"))
    of_guides = set(re.findall(r"\(\.\./pictures/(\w+)\.svg\)", pages))
    assert set(shown) | of_guides == set(pictures().PICTURES)
    assert all(f"*Experiment `{name}`, " in body for name, body in shown.items())


@pytest.mark.parametrize("file", sorted((DOCS / "pictures").glob("*.svg")), ids=lambda f: f.stem)
def test_a_picture_is_small_and_drawn_from_the_records(file):
    drawn = file.read_text(encoding="utf-8")
    assert len(drawn) < SMALL
    assert pictures().source(file.stem) in drawn, "run: python docs/pictures.py"


def test_every_picture_is_there_and_its_labels_are_the_numbers_of_the_record():
    assert {file.stem for file in (DOCS / "pictures").glob("*.svg")} == set(pictures().PICTURES)
    labels = (DOCS / "pictures" / "direction.svg").read_text(encoding="utf-8")
    data = at.load("direction", results="published").divergence.sel(start="gaussian")
    for p in data.p.values:
        for q in data.q.values:
            end = float(data.sel(p=p, q=q).median("member").dropna("step")[-1])
            assert f"p = {q:g}: {end:.2g}<" in labels


def test_what_readme_says_of_its_picture_is_published():
    (alt,) = re.findall(r"!\[([^]]*)\]\(docs/pictures/direction\.svg\)", readme())
    below = readme().partition("\n*Attention that is trained")[2].partition("*\n")[0]
    assert numbers(f"{alt} {below}") - numbers(answer("direction")) == set()


def test_a_picture_can_be_drawn_again(tmp_path):
    assert pictures().draw("heads", tmp_path).stat().st_size < SMALL


def test_samples_that_known_attention_saves_are_read_off_the_record():
    """The n at which attention has the error that no attention has at the largest n."""
    data = at.load("sample_complexity", results="published")
    measured = pictures().sparse_saving(data)
    experiment = one_named("sample_complexity")
    assert experiment.answer
    said = experiment.answer(data)
    told = [entry.split(" for ")[0] for entry in str(said["one"]).split("; ")]
    for (ratio, factor, least), text in zip(measured, told, strict=True):
        assert 0.9 < factor / ratio < 1.6, ratio
        assert factor < 0.6 * ratio**2 or least, ratio
        # The answer computes it once more, with a bootstrap.
        assert text.startswith("at least") == least
        assert least or float(text.split(" ")[0]) == pytest.approx(factor, rel=0.05)
    assert len(measured) == 9
    assert said["within"] == ""
    assert said["clear"]
    assert not said["saves_moving"]


def test_reviews_gain_nothing_by_attending():
    """Self-attention against its control of equal weights, paired, and how far it spreads."""
    data = at.load("reviews", results="published")
    pair = 100 * (
        data.accuracy.sel(model="self-attention") - data.accuracy.sel(model="equal weights")
    ).transpose("member", "n")
    z = pair.mean("member") / (pair.std("member", ddof=1) / np.sqrt(data.sizes["member"]))
    assert float(abs(z).max()) < 2.26  # Student's 95 % of ten pairs
    assert "equal weights are as good" in answer("reviews")
    assert "spread over 130.0 of 130.0" in answer("reviews")


def test_the_norm_of_the_largest_weights_is_told_in_both_readings():
    assert numbers(answer("concentration")) >= {0.909, 0.938, 0.489}


def test_the_gap_of_sparse_majority_grows_in_the_ranks_of_its_runs():
    data = at.load("sparse_majority", results="published")
    gap = data.shown.sel(quantity="validation minus training loss").transpose("T", "member")
    ranks = gap.values.ravel().argsort().argsort().reshape(gap.shape)
    rng = np.random.default_rng(0)
    trend = (ranks.mean(1) * (np.arange(10) - 4.5)).sum()
    shuffled = [rng.permutation(ranks.ravel()).reshape(gap.shape).mean(1) for _ in range(4000)]
    chance = np.mean([(each * (np.arange(10) - 4.5)).sum() >= trend for each in shuffled])
    assert chance < 0.02
    assert "The loss gap grows with $T$" in answer("sparse_majority")
    assert "$T = 20$, carries much of it" in answer("sparse_majority")


def test_not_every_training_moves_attention_to_the_relevant_tokens():
    assert answer("attention").startswith("In most trainings from every start, not in all")
