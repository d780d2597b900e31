"""`attlas doctor` and `attlas data` say what is there and how to fix what is not."""

import pytest

from attlas.cli.doctor import _write_refusal
from attlas.cli.main import main


@pytest.fixture
def attlas(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


def test_doctor_names_versions_precision_and_missing_data(attlas, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    code, out, _ = attlas("--results", str(tmp_path / "new"), "doctor")
    assert code == 0
    for said in ("jaxlib", "float64", "writable", "attlas data fetch mnist"):
        assert said in out
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_named_with_its_reason(tmp_path):
    (tmp_path / "file").write_text("")
    assert _write_refusal(tmp_path / "file" / "below") == "Not a directory"
    assert _write_refusal(tmp_path / "not" / "yet" / "there") is None


def test_data_verify_refuses_a_folder_that_is_not_there(attlas, tmp_path):
    code, out, err = attlas("data", "verify", "--data-dir", str(tmp_path / "none"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "none does not exist" in err


def test_data_verify_refuses_a_folder_without_sets(attlas, tmp_path):
    code, out, err = attlas("data", "verify", "--data-dir", str(tmp_path))
    assert code == 2
    assert "absent" in out
    assert err.count("\n") == 1


def test_data_list_names_the_licence_of_every_set(attlas):
    code, out, _ = attlas("data")
    assert code == 0
    for said in ("mnist", "imdb", "digits", "CC BY 4.0"):
        assert said in out
