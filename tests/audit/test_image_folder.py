"""Images are prepared as transformers prepares them, and foreign files cost little."""

import json
import struct
import zlib

import numpy as np
import pytest
from captured_models import library
from cost import cost_of

from attlas.audit.image_folder import image_batch, read_image, read_processor
from attlas.core.errors import UserError

Image = pytest.importorskip("PIL.Image", reason="the extra attlas[audit] is not installed")
CONFIG = {
    "image_size": 12,
    "id2label": {"0": "cat", "1": "dog"},
    "architectures": ["ViTForImageClassification"],
}


def picture(seed=0, shape=(20, 30, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("ViT", {"size": {"height": 12, "width": 12}}),
        ("CLIP", {"size": {"shortest_edge": 14}, "crop_size": {"height": 12, "width": 12}}),
        ("CLIP", {"size": {"shortest_edge": 10}, "crop_size": {"height": 12, "width": 12}}),
        ("ViT", {"do_resize": False, "do_normalize": False}),
    ],
)
@pytest.mark.parametrize("shape", [(20, 30, 3), (31, 17, 3)])
def test_images_are_those_of_the_processor_of_transformers(tmp_path, kind, changes, shape):
    _, transformers = library()
    name = f"{kind}ImageProcessorPil"
    if not hasattr(transformers, name):
        name = f"{kind}ImageProcessor"
    processor = getattr(transformers, name)(**changes)
    processor.save_pretrained(tmp_path)
    Image.fromarray(picture(shape=shape)).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png", read_processor(tmp_path, {}))
    expected = processor(Image.open(tmp_path / "a.png"), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(image, expected, atol=1e-5)


def folder_of(tmp_path, count=4):
    for place in range(count):
        (tmp_path / "images" / ("cat", "dog")[place % 2]).mkdir(parents=True, exist_ok=True)
        file = tmp_path / "images" / ("cat", "dog")[place % 2] / f"{place}.png"
        Image.fromarray(picture(place)).save(file)
    return tmp_path / "images"


def test_names_of_sub_folders_are_labels(tmp_path):
    batch = image_batch(tmp_path, CONFIG, folder_of(tmp_path), None, most=9)
    means = {picture(place).mean(): place % 2 for place in range(4)}
    assert batch.sequences is not None
    assert [image.shape for image in batch.sequences] == [(3, 12, 12)] * 4
    assert sorted(batch.labels) == [0, 0, 1, 1]
    assert len(means) == 4
    assert "with labels of the names of its sub-folders" in batch.source
    plain = {"image_size": 12, "architectures": ["ViTModel"]}
    assert image_batch(tmp_path, plain, tmp_path / "images", None, most=9).labels is None


def test_labels_of_a_file_are_in_the_order_of_the_paths(tmp_path):
    for name, value in (("b", 255), ("a", 0)):
        np.save(tmp_path / f"{name}.npy", np.full((12, 12), value, np.uint8))
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    batch = image_batch(tmp_path, CONFIG, tmp_path, tmp_path / "labels.txt", most=9)
    by_value = {
        image.mean(): label for image, label in zip(batch.sequences, batch.labels, strict=True)
    }
    assert by_value == {0.0: 0, 1.0: 1}
    np.save(tmp_path / "c.npy", np.zeros((12, 12), np.uint8))
    with pytest.raises(UserError, match="has 2 labels for 3 images"):
        image_batch(tmp_path, CONFIG, tmp_path, tmp_path / "labels.txt", most=9)


def test_arrays_are_images_too(tmp_path):
    processor = read_processor(tmp_path, CONFIG)
    image = picture(shape=(12, 12, 3))
    for name, array in (
        ("last", image),
        ("first", np.moveaxis(image, -1, 0)),
        ("share", image / 255),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        found = read_image(tmp_path / f"{name}.npy", processor)
        np.testing.assert_allclose(found, np.moveaxis(image, -1, 0) / 255, atol=1e-12)


def bomb(tmp_path, width, height):
    """A PNG of a few bytes that says it is large."""

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(2**20)))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b""))


@pytest.mark.parametrize("sides", [(60_000, 60_000), (2**31 - 1, 1), (9_000, 9_000)])
def test_an_image_that_unpacks_to_much_is_refused_by_its_header(tmp_path, sides):
    bomb(tmp_path, *sides)
    processor = read_processor(tmp_path, CONFIG)

    def read():
        with pytest.raises(UserError, match=r"a.png is no image that can be read"):
            read_image(tmp_path / "a.png", processor)

    seconds, megabytes = cost_of(read)
    assert seconds < 2
    assert megabytes < 200


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.png", b"GIF89a", "cannot identify|no image"),
        ("a.png", b"", "no image"),
        ("a.jpg", b"\xff\xd8\xff", "no image"),
        ("a.npy", b"\x93NUMPY", "no image"),
    ],
)
def test_what_is_no_image_is_one_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said) as refused:
        image_batch(tmp_path, CONFIG, tmp_path, None, most=9)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("array", [np.zeros((4, 4, 2)), np.full((4, 4), -1), np.full((4, 4), 2.0)])
def test_arrays_that_are_no_images_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UserError, match="is no image that can be read"):
        image_batch(tmp_path, CONFIG, tmp_path, None, most=9)


def test_folders_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"holds no image: give .png, .jpg or .npy files"):
        image_batch(tmp_path, CONFIG, tmp_path, None, most=9)
    with pytest.raises(UserError, match="is no folder"):
        image_batch(tmp_path, CONFIG, tmp_path / "none", None, most=9)
    folder = folder_of(tmp_path)
    other = {"0": "bird", "1": "dog"}
    with pytest.raises(UserError, match=r"label 'cat' .* is no class of the model"):
        image_batch(tmp_path, CONFIG | {"id2label": other}, folder, None, most=9)
    Image.fromarray(picture()).save(folder / "a.png")
    with pytest.raises(UserError, match="beside sub-folders of images"):
        image_batch(tmp_path, CONFIG, folder, None, most=9)


@pytest.mark.parametrize(
    "settings",
    [
        {"do_flip_channel_order": True},
        {"size": {"longest_edge": 4}},
        {"size": 10**6},
        {"image_std": [0, 0, 0]},
        {"image_mean": [1.0]},
        {"image_mean": "a"},
        {"resample": 17},
        [],
    ],
)
def test_a_processor_that_is_not_understood_is_refused(tmp_path, settings):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="images cannot be prepared as it says"):
        read_processor(tmp_path, CONFIG)
