"""`attlas certify`: tables, files, exit codes."""

import html
import json
import resource
import subprocess
import sys

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from attlas.audit import model_answers
from attlas.certificates.document import certification_schema
from attlas.certificates.stream import stream_schema
from attlas.cli.main import build_app
from attlas.core.errors import UserError


@pytest.fixture
def files(tmp_path):
    for name, wrong in (("old", 40), ("new", 10)):
        rows = [f"{k},{'b' if k * 7 % 400 < wrong else 'a'},a,{k % 2}" for k in range(400)]
        (tmp_path / f"{name}.csv").write_text("id,prediction,label,half\n" + "\n".join(rows))
    return tmp_path


def _certify(*arguments):
    result = CliRunner().invoke(build_app("certify"), ["certify", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def test_tables_page_badge_and_numbers(files):
    out = {kind: files / f"out.{kind}" for kind in ("json", "html", "svg")}
    result = _certify(
        files / "old.csv", files / "new.csv", "--at-most", "0.06", "--group", "half",
        "--json", out["json"], "--page", out["html"], "--badge", out["svg"],
    )  # fmt: skip
    assert result.exit_code == 1, result.output  # new is certified, one half of it is not
    assert "choose any of them, the choice is paid for" in result.output
    document = json.loads(out["json"].read_text())
    jsonschema.validate(document, certification_schema())
    assert [c["verdict"] for c in document["comparisons"]] == ["better"]
    page = out["html"].read_text()
    assert "<svg" in page
    assert "2 models on one test set" in page
    assert "at most" in out["svg"].read_text()


def test_a_model_is_certified_or_not(files):
    assert _certify(files / "new.csv", "--at-most", "0.06").exit_code == 0
    assert _certify(files / "old.csv", "--at-most", "0.06").exit_code == 1


def test_scores_and_calibration_are_certified_beside_the_errors(files):
    rows = [f"{k},{k % 3 == 0:d},{0.9 if k % 3 == 0 else 0.2},{k % 2}" for k in range(600)]
    (files / "scores.csv").write_text("id,label,p,half\n" + "\n".join(rows))
    asked = (files / "scores.csv", "--score", "p", "--f-score", "1", "--calibration", "p")
    page = files / "scores.html"
    result = _certify(*asked, "--group", "half", "--at-least", "0.9", "--page", page)
    assert result.exit_code == 0, result.output
    assert "At once, the F1 of '1' of 'scores' is at least 9" in result.output
    assert "would still measure about" in " ".join(result.output.split())
    assert "Further measures, guaranteed at once" in page.read_text()
    assert _certify(*asked, "--at-least", "0.999").exit_code == 1
    for more, said in (
        (("--threshold", "0.3", "--threshold", "0.5"), "give one --threshold"),
        (("--ledger", files / "l.json"), "--f-score and --calibration out"),
    ):
        with pytest.raises(UserError, match=said):
            _certify(*asked, *more)


def test_the_training_file_is_named_in_the_document(files):
    (files / "train.csv").write_text("id\n1000\n")
    _certify(files / "new.csv", "--train", files / "train.csv", "--json", files / "out.json")
    checks = json.loads((files / "out.json").read_text())["checks"]
    assert "unseen" in [check["name"] for check in checks]


def test_a_shift_is_named_in_the_document(files):
    (files / "later.csv").write_text("prediction\n" + "a\nb\n" * 200)
    _certify(files / "new.csv", "--shift", files / "later.csv", "--json", files / "out.json")
    document = json.loads((files / "out.json").read_text())
    jsonschema.validate(document, certification_schema())
    (check,) = [check for check in document["checks"] if check["name"] == "shift"]
    assert not check["holds"]
    assert any(line.startswith("Warning: 'prediction' shifts") for line in document["sentences"])
    with pytest.raises(UserError, match="give one file beside it"):
        _certify(files / "new.csv", files / "old.csv", "--shift", files / "later.csv")


def test_a_ledger_pays_for_earlier_looks(files):
    def bound():
        _certify(files / "new.csv", "--ledger", files / "l.json", "--json", files / "n.json")
        return json.loads((files / "n.json").read_text())["guarantees"][0]["bound"]

    first = bound()
    _certify(files / "old.csv", "--ledger", files / "l.json")
    assert bound() == first
    assert len(json.loads((files / "l.json").read_text())["looks"]) == 2


def test_a_language_model_is_certified_on_a_text(data_dir, tmp_path):
    folder, text = data_dir / "stories260k", tmp_path / "text.txt"
    text.write_text("Once upon a time there was a little dog.\nHe liked to play.\n" * 8)
    result = _certify(folder, "--text", text, "--json", tmp_path / "out.json", "--at-most", "8")
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(document, stream_schema())
    (model,) = document["models"]
    assert model["measured_per_token"] < model["bits_per_token"] < model["uniform"] == 9
    page, badge = tmp_path / "page.html", tmp_path / "badge.svg"
    shown = _certify(folder, "--text", text, "--at-most", "2", "--page", page, "--badge", badge)
    assert shown.exit_code == 1
    assert document["sentences"][0] in html.unescape(page.read_text()).replace("\u00a0", " ")
    assert "#b3261e" in badge.read_text()  # 2 bits are not certified
    for more, said in (
        (("--group", "half"), "--group is for errors"),
        (("--ledger", tmp_path / "a.json"), "--ledger is for errors"),
        (("--id", "name"), "--id is for errors"),
    ):
        with pytest.raises(UserError, match=said):
            _certify(folder, "--text", text, *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new.csv", "--text", "new.csv"], "are for the folder of a model"),
        (["new.csv", "--labels", "new.csv"], "are for the folder of a model"),
        (["."], "give --text FILE, and --labels FILE for a classifier, or --images FOLDER"),
        (["new.csv", "--images", "."], "are for the folder of a model"),
        ([".", "--text", "a", "--images", "b"], "--text and --images exclude each other"),
        ([".", "--images", "b", "--no-capture"], "leave --no-capture out"),
        ([".", "new.csv", "--text", "new.csv"], "give folders, or files of predictions"),
        ([".", "--text", "a", "--labels", "b", "--no-capture"], "leave --no-capture out"),
    ],
)
def test_a_text_belongs_to_the_folder_of_a_model(files, monkeypatch, arguments, said):
    monkeypatch.chdir(files)
    with pytest.raises(UserError, match=said):
        _certify(*arguments)


def test_a_classifier_answers_a_text(tmp_path, monkeypatch):
    table = {
        "id": [str(k) for k in range(300)],
        "label": ["a", "b"] * 150,
        "prediction": ["a", "b"] * 149 + ["a", "a"],
        "confidence": [0.9, 0.95] * 150,
    }
    monkeypatch.setattr(model_answers, "class_table", lambda *arguments, **options: table)
    for name in ("text", "labels"):
        (tmp_path / name).write_text("a\n" * 300)
    (tmp_path / "bert-v1.5").mkdir()
    result = _certify(
        tmp_path / "bert-v1.5", "--text", tmp_path / "text", "--labels", tmp_path / "labels",
        "--calibration", "confidence", "--f-score", "b", "--at-most", "0.05",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "the F1 of 'b' of 'bert-v1.5' is at least" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--baseline", "x.csv"], "none of the files"),
        (["--threshold", "0.5"], "name its column with --score"),
        (["--train", "{old}"], "400 of 400 test examples"),
        (["--page", "x.txt"], "written as HTML"),
        (["--in-order"], "give at_most"),
    ],
)
def test_bad_input_is_one_line(files, options, said):
    options = [option.format(old=files / "old.csv") for option in options]
    with pytest.raises(UserError, match=said):
        _certify(files / "new.csv", *options)


@pytest.mark.thorough
def test_25000_predictions_take_less_than_five_seconds(tmp_path):
    """Processor time of the whole process, not wall time: another load must not decide."""
    wrong = np.random.default_rng(0).random(25_000) < 0.17
    rows = [f"test/{k},{k % 2},{(k + error) % 2}" for k, error in enumerate(wrong.tolist())]
    file = tmp_path / "reviews.csv"
    file.write_text("id,label,prediction\n" + "\n".join(rows))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "attlas", "certify", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "all 25000 examples differ" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
