"""`attlas audit` writes a page, numbers and a kept audit; bad calls are one line."""

import json
import re
import shutil
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest
from random_checkpoints import random_checkpoint

from attlas.cli import audit as command
from attlas.cli.main import main
from attlas.experiments.audits import stored_audits
from attlas.experiments.schema import violations
from attlas.models.networks.encoder import make_encoder
from attlas.transformers.attlas_model import save_model, stored_form


@pytest.fixture
def attlas(capsys, monkeypatch, tmp_path):
    """Run the command line in this process: exit code, standard output, standard error."""
    # the process of the tests is started already: its variables stay
    monkeypatch.setattr(command, "require_machine", lambda: None)
    monkeypatch.setattr(command, "_variables", lambda model, level: {})
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(("--results", str(tmp_path / "results"), "audit", *arguments))
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def model(tmp_path):
    encoder = make_encoder(jax.random.key(1), 7, 5, width=6, blocks=1, heads=2, hidden=8)
    return str(save_model(tmp_path / "<i>model", stored_form(encoder)))


@pytest.mark.thorough
def test_an_audit_writes_a_page_numbers_and_what_the_atlas_reads(attlas, model, tmp_path):
    code, out, _ = attlas(model, "--level", "weights", "--json", "numbers.json")
    assert (code, out) == (0, "audit.html\n")
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert violations(found, "audit") == ()
    assert found["model"]["name"] == "<i>model"
    assert stored_audits(tmp_path / "results") == ([found], [])
    page = (tmp_path / "audit.html").read_text()
    assert "&lt;i&gt;model" in page
    assert "<i>model" not in page


def test_an_audit_of_which_nothing_has_changed_is_not_computed_again(
    attlas, model, tmp_path, monkeypatch
):
    arguments = (model, "--level", "weights", "--json", "numbers.json")
    places = [tmp_path / name for name in ("audit.html", "numbers.json")]
    assert attlas(*arguments)[:2] == (0, "audit.html\n")
    first = [place.read_text() for place in places]
    (computed,) = (tmp_path / "results" / "audits").iterdir()
    stored = computed.read_bytes()
    with monkeypatch.context() as without:
        without.setattr(import_module("attlas.audit.audit"), "audit", lambda *_, **__: 1 / 0)
        code, out, _ = attlas(*arguments)
    again = r"audit unchanged, computed \d+ (s|min) ago; --fresh computes it again\naudit.html\n"
    assert code == 0
    assert re.fullmatch(again, out)
    assert [place.read_text() for place in places] == first
    assert computed.read_bytes() == stored
    assert attlas(*arguments, "--fresh")[:2] == (0, "audit.html\n")
    shutil.rmtree(model)
    other = make_encoder(jax.random.key(2), 7, 5, width=6, blocks=1, heads=2, hidden=8)
    save_model(Path(model), stored_form(other))
    assert attlas(*arguments)[1] == "audit.html\n"


@pytest.fixture
def image_model(tmp_path):
    encoder = make_encoder(jax.random.key(1), 7, 5, width=6, blocks=1, heads=2, hidden=8)
    return str(save_model(tmp_path / "images", stored_form(encoder, continuous=True)))


@pytest.mark.thorough
def test_why_a_model_is_audited_at_level_weights_is_said(attlas, model, image_model, tmp_path):
    code, out, _ = attlas(model)
    assert code == 0
    assert out.splitlines()[0].startswith("level weights: no tokenizer lies beside the model")
    code, out, _ = attlas(image_model)
    assert code == 0
    assert out.splitlines()[0].startswith("level weights: this model reads images")
    assert "The model reads images" in (tmp_path / "audit.html").read_text()


@pytest.mark.parametrize("arguments", [["--level", "data"], ["--tokens", "some.txt"]])
def test_levels_that_read_words_are_refused_for_images(attlas, image_model, arguments):
    code, out, err = attlas(image_model, *arguments)
    assert (code, out) == (2, "")
    assert "reads images" in err
    assert "choose --level weights" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--level", "shallow"], "choose weights, data or deep"),
        (["--level", "data"], "holds no tokenizer"),
        (["--text", "a", "--tokens", "b"], "--text and --tokens exclude each other"),
        (["--images", "a", "--pairs", "b"], "--images and --pairs exclude each other"),
        (["--labels", "a"], "--labels are of the lines of --text, or of --images"),
        (["--pairs", "a", "--labels", "b"], "--labels are of the lines of --text, or of --images"),
        (["--pairs", "a", "--no-capture"], "with --pairs the model runs in PyTorch"),
        (["--level", "weights", "--images", "a"], "--images is for levels that read sequences"),
        (["--tokens", "none.txt"], "none.txt"),
        (["--level", "weights", "--against", "none"], "--against is for level deep"),
        (["--level", "weights", "--text", "a"], "--text is for levels that read sequences"),
        (["--curvature-sequences", "2"], "--curvature-sequences is for level deep"),
        (["--level", "deep", "--learning-rate", "-1"], "learning_rate = -1.0: it must be above 0"),
        (["--level", "deep", "--learning-rate", "inf"], "learning_rate = inf"),
        (
            ["--level", "deep", "--learning-rate", "1", "--momentum", "1"],
            "momentum = 1.0: it must lie in [0, 1)",
        ),
        (["--level", "deep", "--momentum", "0.9"], "add --learning-rate"),
        (["--workers", "4"], "--workers is for an audit on dask"),
        (["--out", "none/audit.html"], "none"),
        (["--out", "audit.pdf"], "is written as HTML"),
    ],
)
def test_bad_calls_are_refused_in_one_line(attlas, model, tmp_path, arguments, said):
    code, out, err = attlas(model, *arguments)
    # a bar of progress may stand before the line
    said_by_attlas = [line for line in err.splitlines() if line.startswith("attlas: ")]
    assert (code, out, len(said_by_attlas)) == (2, "", 1)
    assert said in said_by_attlas[0]
    assert not (tmp_path / "audit.html").exists()


def test_nothing_to_audit_is_said(attlas):
    code, _, err = attlas()
    assert code == 2
    assert "holds no trained model" in err


def test_tokens_outside_the_vocabulary_are_named(attlas, model, tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 5), 99))
    code, _, err = attlas(model, "--tokens", "a.npy")
    assert code == 2
    assert "sequence 0: token 99 is outside" in err


@pytest.mark.thorough
def test_sequences_end_at_the_models_last_position_and_the_page_says_so(attlas, model, tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 9), 1))
    code, _, _ = attlas(model, "--tokens", "a.npy", "--json", "numbers.json")
    notes = json.loads((tmp_path / "numbers.json").read_text())["notes"]
    assert code == 0
    assert notes[0] == (
        "Read: 2 sequences of 6 tokens, tokens of a.npy; sequences longer than 6 tokens, which "
        "end there: 2."
    )


@pytest.mark.thorough
def test_a_text_is_read_without_the_padding_that_its_tokenizer_stores(attlas, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = save_model(tmp_path / "bert", random_checkpoint("bert"))
    vocabulary = {word: k for k, word in enumerate(("[PAD]", "the", "film", "was", "good"))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(folder / "tokenizer.json"))
    (tmp_path / "a.txt").write_text("the film was good\n" + "good film " * 10)
    code, _, _ = attlas(str(folder), "--text", "a.txt", "--json", "numbers.json")
    notes = json.loads((tmp_path / "numbers.json").read_text())["notes"]
    assert code == 0
    assert notes[0] == (
        "Read: 3 sequences of 4 to 16 tokens, of a.txt; lines longer than 16 tokens, which "
        "continue in the next sequence: 1."
    )


def test_what_is_compared_with_is_opened_first(attlas, model, tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 5), 1))
    code, _, err = attlas(
        model, "--level", "deep", "--tokens", "a.npy", "--against", str(tmp_path / "none")
    )
    assert (code, "none" in err, "%" in err) == (2, True, False)


def test_a_model_judged_by_its_own_output_is_compared_with_none_before_anything(
    attlas, model, tmp_path, monkeypatch
):
    np.save(tmp_path / "a.npy", np.full((2, 5), 1))

    def computed(*arguments):
        raise AssertionError("something was computed")

    monkeypatch.setattr(import_module("attlas.audit.audit"), "weights_level", computed)
    code, _, err = attlas(model, "--level", "deep", "--tokens", "a.npy", "--against", model)
    assert code == 2
    assert "compares its outputs" in err


def test_one_sequence_has_no_interval(attlas, model, tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("1 2 3\n")
    code, _, err = attlas(model, "--tokens", str(tokens))
    assert code == 2
    assert "the batch has 1 sequence" in err
    assert not (tmp_path / "audit.html").exists()
