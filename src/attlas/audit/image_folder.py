"""Images of a folder as the processor of a vision model gives them, within a budget."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attlas._files.budget import CONFIGURATION, LARGEST_ARRAY, first_rows, parse_json
from attlas._files.plain_file import Damaged, open_plain_file, printable, read_plain_file
from attlas.audit.class_labels import class_count, class_names, class_numbers
from attlas.audit.labelled_batch import Batch, drawn_examples, label_lines, of_all
from attlas.core.errors import UserError
from attlas.transformers.load_model import open_checkpoint

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""Read by Pillow, by these decoders alone."""
_MOST_FILES = 100_000
_LARGEST_FILE = 2**26
_MOST_POINTS = 2**26
_CHANNELS = 3


class Processor(NamedTuple):
    """What becomes of an image before a model reads it, as preprocessor_config.json says.

    Attributes:
        size: height and width; or the shorter side alone, the other in proportion; None for none.
        crop: height and width of what is cut from the middle, or None.
        resample: number of a filter of Pillow.
        factor: of values from 0 to 255.
        mean: of each channel, subtracted.
        std: of each channel, which values are divided by.
        channels: of the model.
    """

    size: tuple[int, ...] | None
    crop: tuple[int, int] | None
    resample: int
    factor: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: int


class ClassImages(NamedTuple):
    """Images of a folder that are not read yet, with their classes.

    Attributes:
        files: in the order of their paths.
        labels: number of the class of each; None where nothing says them.
        processor: what becomes of an image before the model reads it.
        by: what said the classes, prose.
    """

    files: list[Path]
    labels: Int[np.ndarray, " n"] | None
    processor: Processor
    by: str


def class_images(
    model_folder: Path,
    folder: Path,
    labels: Sequence[str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> ClassImages:
    """Images of a folder with their classes, by labels or by the names of sub-folders.

    Args:
        model_folder: folder of the model, with its preprocessor_config.json.
        folder: .png, .jpg and .npy files, or sub-folders of them whose names are classes.
        labels: name or number of the class of each image, in the order of their paths.
        config: content of config.json; read from the model's folder when None.

    Raises:
        UserError: if the folder has no images, or a label is none of the classes.
    """
    settings = open_checkpoint(model_folder).config if config is None else config
    processor = read_processor(model_folder, settings)
    files, named = _files(folder)
    several, by = labels, "their file"
    if several is None and named and _has_head(settings):
        several, by = [file.parent.name for file in files], "the names of its sub-folders"
    if several is None:
        return ClassImages(files, None, processor, "")
    if len(several) != len(files):
        raise UserError(
            f"{len(several)} labels for {len(files)} images of {folder}: give one for each"
        )
    numbers = class_numbers(several, class_names(settings, class_count(settings)))
    return ClassImages(files, numbers, processor, by)


def image_batch(
    model_folder: Path,
    config: Mapping[str, Any],
    folder: Path,
    labels: Path | None,
    *,
    most: int,
) -> Batch:
    """Images of a folder, with labels by file or by the names of sub-folders.

    Args:
        model_folder: folder of the model, with its preprocessor_config.json.
        config: content of config.json: classes, and sizes where there is no processor.
        folder: .png, .jpg and .npy files, or sub-folders of them whose names are classes.
        labels: file with a label for each image in the order of their paths, or None.
        most: largest number of images.

    Raises:
        UserError: if the folder has no images, a label is none of the classes, or an image cannot
            be read.
    """
    several = None
    if labels is not None:
        several = label_lines(labels, len(_files(folder)[0]), f"images of {folder}")
    there = class_images(model_folder, folder, several, config)
    places = drawn_examples(len(there.files), most)
    images = [read_image(there.files[place], there.processor) for place in places]
    source = f"of {folder}, {of_all(len(places), len(there.files), 'images')}"
    if there.labels is None:
        return Batch(images, source)
    by = there.by if labels is None else str(labels)
    return Batch(images, f"{source}, with labels of {by}", there.labels[places])


def _has_head(config: Mapping[str, Any]) -> bool:
    names = config.get("architectures") or []
    return any(str(name).endswith("ForImageClassification") for name in names)


def _files(folder: Path) -> tuple[list[Path], bool]:
    """The images of a folder in the order of their paths, and whether they lie in sub-folders."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: --images takes a folder of images")
    try:
        inside = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
        nested = [path for path in inside if path.is_dir()]
        there = [*inside, *(file for each in nested for file in sorted(each.iterdir()))]
    except OSError as error:
        raise UserError(f"{folder} cannot be listed ({error.strerror or error})") from error
    files = [path for path in there if path.suffix.lower() in (*FORMATS, ".npy")]
    if not files:
        raise UserError(f"{folder} holds no image: give .png, .jpg or .npy files")
    if len(files) > _MOST_FILES:
        raise UserError(f"{folder} holds {len(files)} images: give at most {_MOST_FILES}")
    named = {file.parent != folder for file in files}
    if len(named) > 1:
        raise UserError(
            f"{folder} holds images beside sub-folders of images: give one or the other"
        )
    return files, named.pop()


def read_processor(folder: Path, config: Mapping[str, Any]) -> Processor:
    """The processor of a model's folder; where it has none, images are scaled to the model's size.

    Args:
        config: content of config.json.

    Raises:
        UserError: if the file is damaged, or asks for what is not understood.

    Examples:
        >>> read_processor(Path("/nowhere"), {"image_size": 8}).size
        (8, 8)
    """
    file = folder / "preprocessor_config.json"
    vision = config.get("vision_config", config)
    channels = vision.get("num_channels", _CHANNELS) if isinstance(vision, Mapping) else _CHANNELS
    side = vision.get("image_size", 224) if isinstance(vision, Mapping) else 224
    try:
        content = read_plain_file(file, CONFIGURATION.bytes)
        settings = {} if content is None else parse_json(content, CONFIGURATION)
        return _processor(settings, side, channels)
    except (Damaged, TypeError, ValueError, KeyError, AttributeError) as error:
        said = printable(str(error))[:200]
        raise UserError(f"{file}: images cannot be prepared as it says ({said})") from None


def _processor(settings: Mapping[str, Any], side: Any, channels: Any) -> Processor:
    unknown = {"do_pad", "do_reduce_labels", "do_flip_channel_order", "do_convert_grayscale"}
    asked = sorted(name for name in unknown if settings.get(name))
    if asked:
        raise Damaged(f"{asked[0]} is not understood")
    size = _sides(settings.get("size", side)) if settings.get("do_resize", True) else None
    crop = None
    if settings.get("do_center_crop", False):
        crop = _sides(settings.get("crop_size", side))
        crop = (crop[0], crop[-1])
    normalises = settings.get("do_normalize", bool(settings))
    mean, std = (settings.get(name, [0.5] * channels) for name in ("image_mean", "image_std"))
    factor = settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1.0
    if not normalises:
        mean, std = [0.0] * channels, [1.0] * channels
    mean, std = ([float(value) for value in _each(values, channels)] for values in (mean, std))
    if not all(map(math.isfinite, [*mean, *std, float(factor)])) or min(map(abs, std)) == 0:
        raise Damaged("image_mean, image_std and rescale_factor are no finite numbers")
    filter_ = settings.get("resample", 2)
    if filter_ not in range(6):
        raise Damaged(f"resample = {filter_!s:.20} is no filter of Pillow, 0 to 5")
    return Processor(size, crop, filter_, float(factor), tuple(mean), tuple(std), int(channels))


def _each(values: Any, channels: int) -> list[float]:
    several = values if isinstance(values, list) else [values] * channels
    if len(several) != channels:
        raise Damaged(f"image_mean and image_std have {len(several)} numbers, of {channels}")
    return several


def _sides(size: Any) -> tuple[int, ...]:
    """Height and width, or the shorter side alone."""
    if isinstance(size, Mapping):
        if set(size) == {"shortest_edge"}:
            sides: tuple[Any, ...] = (size["shortest_edge"],)
        elif {"height", "width"} <= set(size):
            sides = (size["height"], size["width"])
        else:
            raise Damaged(f"size by {', '.join(map(str, size))} is not understood")
    else:
        sides = tuple(size) if isinstance(size, list) else (size, size)
    if not all(type(number) is int and 0 < number <= 4096 for number in sides):
        raise Damaged("sides of an image are no whole numbers from 1 to 4096")
    return sides


def read_image(file: Path, processor: Processor) -> Float[np.ndarray, "C H W"]:
    """One image as the model reads it.

    Args:
        file: .png or .jpg; or .npy, an image of (H, W), (H, W, C) or (C, H, W), as values of 0 to
            255 in whole numbers or of 0 to 1.

    Raises:
        UserError: if it is no such file, or has more than 67 million points.
    """
    try:
        values = _array(file) if file.suffix.lower() == ".npy" else _decoded(file)
    except (Damaged, OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"{file} is no image that can be read ({printable(str(error))[:200]}): take it out, or "
            "save it as PNG"
        ) from None
    return processed(values, processor)


def _array(file: Path) -> np.ndarray:
    values = first_rows(file, LARGEST_ARRAY)
    if values.ndim == 2:
        values = values[..., None]
    elif values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[2] not in (1, 3):
        values = np.moveaxis(values, 0, -1)
    if values.ndim != 3 or values.shape[2] not in (1, 3) or 0 in values.shape:
        raise Damaged(f"an array of shape {values.shape} has not 1 or 3 channels")
    if values.dtype.kind == "f":
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise Damaged("values are not between 0 and 1")
        return np.round(255 * values.astype(float)).astype(np.uint8)
    if values.dtype.kind not in "ui" or values.min() < 0 or values.max() > 255:
        raise Damaged("values are not between 0 and 255")
    return values.astype(np.uint8)


def _decoded(file: Path) -> np.ndarray:
    """By the decoder that the file's name says, once its header has said how large it is."""
    from PIL import Image

    with open_plain_file(file) as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # limited below
        size = stream.seek(0, 2)
        if size > _LARGEST_FILE:
            raise Damaged(f"{size} bytes, of at most {_LARGEST_FILE}")
        stream.seek(0)
        try:
            image = Image.open(stream, formats=[FORMATS[file.suffix.lower()]])
        except Image.DecompressionBombError as error:
            raise Damaged(str(error)) from None
        if image.width * image.height > _MOST_POINTS:
            raise Damaged(f"{image.width} times {image.height} points are too many")
        if image.mode.startswith("I"):
            raise Damaged("16 bits for each point are not read")
        grey = image.mode in ("1", "L")
        values = np.asarray(image.convert("L" if grey else "RGB"))
    return values[..., None] if grey else values


def processed(values: Any, processor: Processor) -> Float[np.ndarray, "C H W"]:
    """An image of bytes resized, cut and normalised, as the transformers library does.

    Args:
        values: array of bytes (H, W, 1) or (H, W, 3).
        processor: sizes and factors to apply.

    Raises:
        UserError: if it has colours and the model has none.

    Examples:
        >>> plain = Processor((2, 2), None, 0, 1 / 255, (0.5,), (0.5,), 1)
        >>> processed(np.full((4, 4, 1), 255, np.uint8), plain).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]
    """
    from PIL import Image

    if values.shape[2] == 1 and processor.channels == _CHANNELS:
        values = np.repeat(values, _CHANNELS, axis=2)
    if values.shape[2] != processor.channels:
        raise UserError(
            f"an image has {values.shape[2]} channels, the model {processor.channels}: convert it"
        )
    if processor.size is not None:
        height, width = _resized(values.shape[:2], processor.size)
        planes = [
            np.asarray(Image.fromarray(values[..., k]).resize((width, height), processor.resample))
            for k in range(values.shape[2])
        ]
        values = np.stack(planes, axis=-1)
    if processor.crop is not None:
        values = _cropped(values, processor.crop)
    scaled = (values * processor.factor - np.array(processor.mean)) / np.array(processor.std)
    return np.moveaxis(scaled, -1, 0)


def _resized(shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) == 2:
        return size[0], size[1]
    height, width = shape
    longest = int(size[0] * max(height, width) / min(height, width))
    return (size[0], longest) if height <= width else (longest, size[0])


def _cropped(values: np.ndarray, crop: tuple[int, int]) -> np.ndarray:
    """The middle; where the image is smaller it is surrounded by zeros."""
    lacking = [max(0, side - length) for side, length in zip(crop, values.shape, strict=False)]
    margins = [(-(-number // 2), number // 2) for number in lacking]
    values = np.pad(values, [*margins, (0, 0)])
    top, left = ((length - side) // 2 for side, length in zip(crop, values.shape, strict=False))
    return values[top : top + crop[0], left : left + crop[1]]
