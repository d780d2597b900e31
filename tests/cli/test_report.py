"""`attlas report` of a folder that is not there, or holds nothing, says so."""

import pytest

from attlas.cli.main import main
from attlas.experiments.store import Store

FILE = """
import attlas as at

@at.inequality(
    sample=lambda rng, count: {"x": rng.uniform(size=count)},
    controls=[at.Control("half", factor=0.5)],
)
def squares(x, *, factor=1.0):
    "The square of a number below 1 is smaller."
    return x**2, factor * x
"""


@pytest.fixture
def report(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims_reported.py").write_text(FILE)

    def run(results):
        with pytest.raises(SystemExit) as stopped:
            main(["--results", results, "report", "claims_reported.py", "--out", "page.html"])
        assert stopped.value.code == 0
        pages = [tmp_path / "page.html", *(tmp_path / "page").glob("paper-*.html")]
        assert ["claims_reported.py:4" in page.read_text() for page in pages] == [False, True]
        return capsys.readouterr().err

    return run


def test_a_misspelt_results_folder_is_told(report):
    said = report("mispelt")
    assert "there is no results folder mispelt, so the page shows published results alone" in said


def test_an_empty_results_folder_is_told(report, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "the results folder empty holds no records" in report("empty")
    (tmp_path / "empty" / "verdicts").mkdir()
    assert report("empty") == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--out", "page.pdf"), "--out page.pdf is written as HTML"),
        (("--records", "nowhere"), "--records nowhere is not a folder"),
    ],
)
def test_what_would_mislead_is_refused(report, tmp_path, capsys, arguments, line):
    with pytest.raises(SystemExit) as stopped:
        main(["report", "claims_reported.py", *arguments])
    assert stopped.value.code == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "page.pdf").exists()


def test_a_single_file_has_everything(report, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["report", "claims_reported.py", "--out", "one.html", "--single"])
    assert stopped.value.code == 0
    assert "claims_reported.py:4" in (tmp_path / "one.html").read_text()
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [((), "records"), (("--records", "none"), None), (("--records", "."), "")],
)
def test_the_published_records_are_shown_by_default(report, monkeypatch, arguments, shown):
    folders = []

    def written(store, out, names, *, published, **options):
        folders.append(published)
        return out

    monkeypatch.setattr("attlas.site.atlas.write_atlas", written)
    with pytest.raises(SystemExit):
        main(["report", "claims_reported.py", *arguments])
    (folder,) = folders
    place = folder.root if isinstance(folder, Store) else folder
    assert (place and place.name) == shown


def test_one_paper_is_one_file(report, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["report", "--paper", "claims_reported.py", "--single"])
    assert stopped.value.code == 2
    assert "leave out --single" in capsys.readouterr().err
