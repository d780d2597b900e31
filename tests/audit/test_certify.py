"""Folders of models are certified in Python as the command does."""

import json
import subprocess
import sys

import numpy as np
import pytest
from captured_models import library
from typer.testing import CliRunner

import attlas as at
from attlas.cli.main import build_app
from attlas.core.errors import UserError

COLOURS = ("blue", "red")


def vision_model(folder, kind="ViTForImageClassification"):
    """A model of two classes at random, in the form of transformers."""
    torch, transformers = library()
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 20, "image_size": 12, "patch_size": 4}
    names = dict(enumerate(COLOURS))
    config = transformers.ViTConfig(**sizes, id2label=names, initializer_range=1.0)
    model = getattr(transformers, kind)(config).double().eval()
    model.save_pretrained(folder)
    return model


def pictures(folder, number=40):
    """Images in a sub-folder for each class, and what a model reads of them."""
    draw = np.random.default_rng(0)
    read = []
    for name in COLOURS:
        (folder / name).mkdir(parents=True)
        for place in range(number // 2):
            image = draw.integers(0, 256, (12, 12, 3)).astype(np.uint8)
            np.save(folder / name / f"{place:02}.npy", image)
            read.append(np.moveaxis(image / 255, -1, 0))
    return np.stack(read)


def test_a_vision_model_is_certified_on_a_folder_of_images(tmp_path):
    model = vision_model(tmp_path / "vit")
    read = pictures(tmp_path / "images")
    import torch

    with torch.no_grad():
        best = model(torch.tensor(read)).logits.numpy().argmax(axis=1)
    errors = (best != np.repeat([0, 1], 20)).astype(float)
    assert 0 < errors.sum() < 40
    expected = at.certify(errors).models[0].bound
    result = at.certify(tmp_path / "vit", images=tmp_path / "images", at_most=0.9)
    (found,) = result.models
    assert (found.model, found.passes) == ("vit", True)
    assert (found.bound.empirical, found.bound.bound) == (expected.empirical, expected.bound)
    labels = ["red"] * 20 + ["0"] * 20  # in the order of paths, whatever the sub-folders say
    swapped = at.certify([tmp_path / "vit"], images=str(tmp_path / "images"), labels=labels)
    assert swapped.models[0].bound.empirical == 1 - expected.empirical
    file = tmp_path / "out.json"
    shown = CliRunner().invoke(
        build_app("certify"),
        [
            *("certify", str(tmp_path / "vit"), "--images", str(tmp_path / "images")),
            *("--calibration", "confidence", "--json", str(file)),
        ],
    )
    assert shown.exit_code == 0, shown.output
    assert json.loads(file.read_text())["guarantees"][0]["empirical"] == expected.empirical


def test_images_that_cannot_be_judged_are_refused_in_one_line(tmp_path):
    vision_model(tmp_path / "vit")
    pictures(tmp_path / "images", 4)
    flat = tmp_path / "flat"
    flat.mkdir()
    np.save(flat / "one.npy", np.zeros((12, 12, 3), np.uint8))
    with pytest.raises(UserError, match="the images have no labels: put them into sub-folders"):
        at.certify(tmp_path / "vit", images=flat)
    with pytest.raises(UserError, match="1 labels for 4 images"):
        at.certify(tmp_path / "vit", images=tmp_path / "images", labels=["red"])
    with pytest.raises(UserError, match="label 'green' "):
        at.certify(tmp_path / "vit", images=tmp_path / "images", labels=["green"] * 4)
    vision_model(tmp_path / "headless", "ViTModel")
    with pytest.raises(UserError, match="gives no logits of classes"):
        at.certify(tmp_path / "headless", images=tmp_path / "images", labels=["red"] * 4)


def test_a_language_model_is_certified_on_lines_or_their_file(data_dir, tmp_path):
    folder, lines = data_dir / "stories260k", ["Once upon a time there was a dog."] * 8
    (tmp_path / "text.txt").write_text("\n".join(lines))
    (found,) = at.certify(folder, text=lines, at_most=8.9)
    (again,) = at.certify(folder, text=tmp_path / "text.txt")
    assert found.bound.bound == again.bound.bound
    assert found.passes is (found.bound.bound <= 8.9)
    with pytest.raises(UserError, match="baseline is for errors, and a text without labels"):
        at.certify(folder, text=lines, baseline="x")


@pytest.mark.parametrize(
    ("losses", "options", "said"),
    [
        ([0, 1], {"text": ["a"]}, "0 is no folder of a model"),
        ("nowhere", {"text": ["a"]}, "nowhere is no folder of a model"),
        (np.zeros(3), {"images": "."}, "text and images are for folders of models"),
        ([0, 1], {"labels": ["a"]}, "are for text or images: give one"),
        (".", {"text": ["a"], "images": "."}, "exclude each other"),
        (".", {"text": ["a"], "labels": ["a"], "capture": False}, "leave capture=False out"),
    ],
)
def test_what_does_not_belong_together_is_refused(losses, options, said):
    with pytest.raises(UserError, match=said):
        at.certify(losses, **options)


def test_predictions_are_certified_without_what_reads_models():
    code = "import sys, attlas as at; at.certify([0, 1] * 20); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = ("xarray", "attlas.audit.model_answers", "attlas.transformers.load_model")
    assert not set(heavy) & set(done.stdout.split())
