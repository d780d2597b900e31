import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder
from attlas.models.networks.translator import make_translator
from attlas.transformers import load_model
from attlas.transformers.attlas_model import save_model, stored_form
from attlas.transformers.attlas_tensors import AttlasTensors
from trauger2023sequence.library.models.transformer import Transformer


def encoder(vocabulary=7):
    return make_encoder(jax.random.key(1), vocabulary, 5, width=6, blocks=2, heads=3, hidden=8)


def translator():
    return make_translator(jax.random.key(2), (7, 9), width=6, blocks=2, heads=3, hidden=8)


@pytest.mark.parametrize("make", [encoder, translator])
def test_a_saved_model_is_read_back_bit_for_bit(tmp_path, make):
    model = make()
    folder = save_model(tmp_path / "deep" / "it", stored_form(model), {"from": "a test"})
    assert json.loads((folder / "config.json").read_text())["notes"]["from"] == "a test"
    saved, kept = load_model(folder), load_model(model)
    assert saved.parameters == kept.parameters
    ids = np.array([6, 1, 2, 3, 4, 5])
    assert jnp.array_equal(saved.attention(ids), kept.attention(ids))


def test_every_array_of_a_model_is_stored_once():
    for model in (encoder(), translator()):
        sizes = [leaf.size for leaf in jax.tree.leaves(model)]
        _, tensors = stored_form(model)
        assert sorted(sizes) == sorted(array.size for array in tensors.values())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*file/it/config.json"):
        save_model(tmp_path / "file" / "it", stored_form(encoder()))


def test_models_without_residual_sums_are_refused():
    with pytest.raises(UserError, match="a Transformer cannot be audited: give an Encoder or"):
        load_model(Transformer(()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 4}, "heads = 4 in the configuration do not divide width = 6"),
        ({"heads": "3"}, "heads = '3' in the configuration is not a whole number"),
        ({"blocks": 3}, "lacks tensor 'blocks.2.down'"),
        ({"blocks": 1}, "has a superfluous tensor 'blocks.1.down'"),
        ({"length": 9}, r"'positions' has shape \(6, 6\), the configuration implies \(10, 6\)"),
        ({"continuous": 1}, "continuous = 1 is neither true nor false"),
    ],
)
def test_a_configuration_of_another_model_is_refused(changes, said):
    config, tensors = stored_form(encoder())
    with pytest.raises(UserError, match=said):
        load_model(tensors, config={**config, **changes}).heads  # noqa: B018 (read now)


def test_sizes_are_whole_and_positive():
    stored = AttlasTensors("model", {"width": 2.0, "heads": True}, {})
    for key in ("width", "heads", "blocks"):
        with pytest.raises(UserError, match=f"model: {key} = .* is not a whole number from 1"):
            stored.size(key)
