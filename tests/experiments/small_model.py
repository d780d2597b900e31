"""A folder with a small model of three layers, and its level weights."""

import json
from pathlib import Path

import jax
import numpy as np

from attlas.audit.weights_level.weights_level import layer_weights
from attlas.models.networks.encoder import make_encoder
from attlas.transformers import load_model
from attlas.transformers.attlas_model import stored_form
from attlas.transformers.write_safetensors import write_safetensors

LAYERS, CONTEXT = 3, 6


def small_model(folder: Path, seed: int = 0) -> Path:
    """Written into the folder as others write models: one name, and no seal."""
    encoder = make_encoder(
        jax.random.key(seed), 9, 5, width=6, blocks=LAYERS, heads=2, hidden=8, dtype="float32"
    )
    config, tensors = stored_form(encoder)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def all_layers(folder: Path) -> list[dict[str, np.ndarray]]:
    """Computed here, without anything kept."""
    model = load_model(folder)
    return [layer_weights(model, index, CONTEXT) for index in range(LAYERS)]


def assert_same(found: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    """Equal bit for bit."""
    assert found.keys() == want.keys()
    for name, values in want.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
