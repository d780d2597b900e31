import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder
from attlas.transformers import load_model
from attlas.transformers.attlas_model import save_model, stored_form
from attlas.transformers.load_model import open_checkpoint

IDS = np.array([7, 1, 2, 3, 4, 5])


def form(dtype=None):
    shape = {"width": 6, "blocks": 2, "heads": 3, "hidden": 8, "dtype": dtype}
    return stored_form(make_encoder(jax.random.key(1), 7, 5, **shape))


def test_the_same_model_from_disk_memory_and_a_module(tmp_path):
    config, tensors = form()
    folder = save_model(tmp_path / "it", (config, tensors))

    class Module:
        def state_dict(self):
            return {f"module.{name}": array for name, array in tensors.items()}

        def named_parameters(self):
            return iter(tensors.items())

    module = Module()
    module.config = config
    (file,) = folder.glob("model@*.safetensors")
    sources = [
        load_model(folder),
        load_model(str(file)),
        load_model(module),
        load_model(tensors, config=config),
    ]
    names = ["it", file.name, "Module", "state dict"]
    expected = sources[0].attention(IDS)
    for model, name in zip(sources, names, strict=True):
        assert model.name.endswith(name)
        assert jnp.array_equal(model.attention(IDS), expected)
    assert load_model(folder, name="mine").name == "mine"


@pytest.mark.thorough
def test_precision_is_the_files_or_the_one_asked_for(tmp_path):
    narrow = save_model(tmp_path / "narrow", form(np.float32))
    assert load_model(narrow).attention(IDS).dtype == np.float32
    assert load_model(narrow, dtype="float64").attention(IDS).dtype == np.float64
    wide = save_model(tmp_path / "wide", form(np.float64))
    assert load_model(wide).attention(IDS).dtype == np.float64
    assert load_model(wide, dtype="float32").attention(IDS).dtype == np.float32
    with pytest.raises(UserError, match="dtype = 'float16' is not known: choose float32 or"):
        load_model(narrow, dtype="float16")


def test_float64_is_never_narrowed_without_a_word(tmp_path):
    wide = save_model(tmp_path / "wide", form(np.float64))
    model = load_model(wide)
    with jax.enable_x64(False):
        for read in (lambda: load_model(wide), lambda: model.layer(0)):
            with pytest.raises(UserError, match=r"in float64 needs JAX's: work inside"):
                read()
        assert load_model(wide, dtype="float32").layer(0).attention.W_Q.dtype == np.float32


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (3, "int is not a model: give the path"),
        (None, "NoneType is not a model"),
        ({"W": np.ones(2)}, "a model of type dict has no configuration"),
        ("nowhere", "nowhere is not there"),
    ],
)
def test_what_is_no_model_is_refused(source, said):
    with pytest.raises(UserError, match=said):
        load_model(source)


def test_layers_are_read_when_they_are_asked_for(tmp_path):
    config, tensors = form()
    tensors["blocks.1.key"] = tensors["blocks.1.key"].copy()
    tensors["blocks.1.key"][0, 0] = np.nan
    model = load_model(save_model(tmp_path / "it", (config, tensors)))
    assert model.layer(0).attention.W_K.shape == (3, 6, 2)
    with pytest.raises(UserError, match=r"tensor 'blocks.1.key' has 1 entries that are NaN"):
        model.layer(1)


def test_counting_from_headers(tmp_path):
    config, tensors = form()
    found = open_checkpoint(save_model(tmp_path / "it", (config, tensors)))
    assert found.tensors.parameters == sum(array.size for array in tensors.values())
    assert found.config["model_type"] == "attlas_encoder"


@pytest.mark.thorough
def test_reading_imports_neither_torch_nor_transformers():
    program = (
        "import sys, attlas.transformers.architecture_table as t; t.architecture_table(); "
        "print(sorted({'torch', 'transformers', 'safetensors'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.mark.parametrize("form", ["", "stories260K.bin", "stories260K.safetensors"])
def test_a_released_model_continues_as_its_documentation_says(form, data_dir):
    model = load_model(data_dir / "stories260k" / form)
    assert model.parameters == 260_032
    # Greedy continuation of the first word, from the released documentation.
    story = np.array([1, 403, 407, 261, 378, 432, 383])
    logits = model.logits(story)
    assert logits.dtype == np.float32
    assert np.argmax(logits[:-1], axis=1).tolist() == story[1:].tolist()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_shards_modules_and_state_dicts_of_the_reference_library_are_one_model(tmp_path, kind):
    torch = pytest.importorskip("torch", reason="torch is an extra of the tests")
    transformers = pytest.importorskip("transformers", reason="an extra of the tests")
    torch.manual_seed(0)
    settings = transformers.LlamaConfig(
        vocab_size=11,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    module = transformers.LlamaForCausalLM(settings).to(getattr(torch, kind))
    module.save_pretrained(tmp_path, max_shard_size="1KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    models = [
        load_model(tmp_path),
        load_model(module),
        load_model(module.state_dict(), config=settings),
        load_model(torch.nn.DataParallel(module), config=module.config),
    ]
    count = sum(each.numel() for each in module.parameters())
    ids = np.array([1, 5, 3, 3, 9])
    expected = models[0].logits(ids)
    assert expected.dtype == np.float32
    for model in models:
        assert model.parameters == count
        assert jnp.array_equal(model.logits(ids), expected)
