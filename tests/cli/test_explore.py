"""`attlas explore` writes the page, and refuses in one line what it cannot write."""

from typer.testing import CliRunner

from attlas.cli.main import build_app
from attlas.core.errors import UserError


def test_the_page_is_written_where_it_was_asked_for(tmp_path):
    out = tmp_path / "page.html"
    ran = CliRunner().invoke(build_app(), ["explore", "--out", str(out)])
    assert ran.exit_code == 0
    assert ran.output.strip() == str(out)
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_folder_that_is_missing_is_named(tmp_path):
    out = tmp_path / "missing" / "page.html"
    ran = CliRunner().invoke(build_app(), ["explore", "--out", str(out)])
    assert isinstance(ran.exception, UserError)
    assert str(out) in str(ran.exception)
