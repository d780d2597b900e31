"""`attlas certify`: tables, files, exit codes."""

import json

import jsonschema
import pytest
from typer.testing import CliRunner

from attlas.certificates.document import certification_schema
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


def test_a_ledger_pays_for_earlier_looks(files):
    def bound():
        _certify(files / "new.csv", "--ledger", files / "l.json", "--json", files / "n.json")
        return json.loads((files / "n.json").read_text())["guarantees"][0]["bound"]

    first = bound()
    _certify(files / "old.csv", "--ledger", files / "l.json")
    assert bound() == first
    assert len(json.loads((files / "l.json").read_text())["looks"]) == 2


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
