"""Thumbnails are small, show the first panel alone, and are the same for the same figure."""

import base64
import io

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from attlas.site.thumbnails import HEIGHT, MOST_CHARACTERS, WIDTH, thumbnail


def picture(address):
    content = base64.b64decode(address.removeprefix("data:image/webp;base64,"))
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def figure(noise=False):
    made = Figure(figsize=(8, 3), layout="constrained")
    left, right = (part.subplots() for part in np.ravel(made.subfigures(1, 2)))
    left.fill_between([0, 1], 0, 1, color="red", label="left")
    right.fill_between([0, 1], 0, 1, color="blue")
    if noise:
        left.imshow(np.random.default_rng(1).uniform(size=(300, 300, 3)), aspect="auto")
    made.legend(loc="outside lower center")
    made.draw_without_rendering()
    return made


def test_the_first_panel_fills_the_picture():
    seen = picture(thumbnail(figure()))
    assert seen.shape[0] <= HEIGHT + 1
    assert seen.shape[1] <= WIDTH + 1
    red = (seen[..., 0] > 200) & (seen[..., 1:].max(axis=-1) < 80)
    blue = (seen[..., 2] > 200) & (seen[..., :2].max(axis=-1) < 80)
    # matplotlib leaves a twentieth of the axes free at each side.
    assert red.mean() > 0.75
    assert not blue.any()


def test_a_noisy_picture_is_small_too():
    assert 0 < len(thumbnail(figure(noise=True))) <= MOST_CHARACTERS


def test_the_same_figure_gives_the_same_picture():
    assert thumbnail(figure()) == thumbnail(figure())
    assert thumbnail(Figure()) == ""
