"""LoRA adapters: what PEFT computes with them, and what is refused."""

import json
import warnings

import numpy as np
import pytest
from random_checkpoints import random_checkpoint
from reference_transformers import libraries

from attlas.audit.audit import audit
from attlas.core.errors import UserError
from attlas.transformers.adapter_folder import ADAPTER, ADAPTER_TENSORS
from attlas.transformers.load_model import load_model
from attlas.transformers.write_safetensors import write_safetensors

TOKENS = np.arange(2, 9)
D, K, H, R = 12, 6, 4, 2
QUERY = "model.layers.1.self_attn.q_proj"
SETTINGS = {"peft_type": "LORA", "r": R, "lora_alpha": 6, "base_model_name_or_path": "../base"}


def folders(tmp_path, kind="llama", factors=None, **settings):
    """A base, and an adapter of one matrix of it, and what the matrix is then."""
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    base.mkdir()
    adapter.mkdir()
    config, tensors = random_checkpoint(kind)
    (base / "config.json").write_text(json.dumps(config))
    single = {name: each.astype(np.float32) for name, each in tensors.items()}
    write_safetensors(base / "model.safetensors", single)
    draw = np.random.default_rng(1)
    stored = {
        f"base_model.model.{QUERY}.lora_A.weight": draw.normal(size=(R, D)),
        f"base_model.model.{QUERY}.lora_B.weight": draw.normal(size=(H * K, R)),
    }
    stored = stored if factors is None else factors
    write_safetensors(
        adapter / ADAPTER_TENSORS, {name: each.astype(np.float32) for name, each in stored.items()}
    )
    (adapter / ADAPTER).write_text(json.dumps(SETTINGS | settings))
    return adapter, config, single, stored


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({}, 6 / R),
        ({"use_rslora": True}, 6 / R**0.5),
        ({"alpha_pattern": {"layers.1.self_attn.q_proj": 5}}, 5 / R),
        ({"r": 7, "rank_pattern": {"q_proj": R}}, 6 / R),
    ],
)
def test_the_product_of_the_factors_is_added(tmp_path, settings, scale):
    adapter, config, tensors, stored = folders(tmp_path, **settings)
    A, B = (stored[f"base_model.model.{QUERY}.lora_{each}.weight"] for each in "AB")
    name = f"{QUERY}.weight"
    by_hand = tensors | {name: (tensors[name] + scale * B @ A).astype(np.float32)}
    found = load_model(adapter)
    expected = load_model(by_hand, config=config)
    np.testing.assert_allclose(found.logits(TOKENS), expected.logits(TOKENS), rtol=1e-4, atol=1e-5)
    plain = load_model(tensors, config=config)
    assert not np.allclose(found.logits(TOKENS), plain.logits(TOKENS), rtol=0.1)


@pytest.mark.thorough
def test_an_audit_says_that_the_adapter_was_merged(tmp_path):
    adapter, *_ = folders(tmp_path)
    found = audit(load_model(adapter), level="weights")
    assert any(note.startswith("LoRA: ") and "was merged with" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_it_is_the_model_that_peft_runs(tmp_path, kind):
    torch, transformers = libraries()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library
        peft = pytest.importorskip("peft", reason="parity: peft is not installed")
    torch.manual_seed(0)
    sizes = {"vocab_size": 31, "hidden_size": 24, "num_attention_heads": 4}
    config = transformers.AutoConfig.for_model(kind, **sizes, num_hidden_layers=2)
    auto = "MaskedLM" if kind == "bert" else "CausalLM"
    model = getattr(transformers, f"AutoModelFor{auto}").from_config(config)
    model.save_pretrained(tmp_path / "base")
    targets = {"gpt2": ["c_attn", "c_fc"], "llama": ["q_proj", "down_proj"], "bert": ["query"]}
    settings = peft.LoraConfig(r=3, lora_alpha=5, target_modules=targets[kind])
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        adapted = peft.get_peft_model(model, settings).eval()
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn(weight.shape))
        expected = adapted(torch.tensor(TOKENS)[None]).logits[0].numpy()
        adapted.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
        adapted.save_pretrained(tmp_path / "adapter")
    found = np.asarray(load_model(tmp_path / "adapter").logits(TOKENS))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"peft_type": "IA3"}, r"peft_type = 'IA3' in adapter_config\.json is not merged by attl"),
        ({"use_dora": True}, r"adapter_config\.use_dora = True in the configuration is not supp"),
        ({"bias": "all"}, r"adapter_config\.bias = 'all' in the configuration is not supported"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights = 'pissa' in .* changes the base mod"),
        ({"layer_replication": [[0, 1]]}, r"adapter_config\.layer_replication = .* is not known"),
        ({"rank_pattern": {".*proj": 2}}, r"rank_pattern of .* names '\.\*proj', a pattern and no"),
        ({"r": 3}, "factors of shapes .* for a matrix of shape .* and rank 3: base and adapter"),
        ({"base_model_name_or_path": "meta/none"}, "holds an adapter of 'meta/none', which is no"),
        ({"base_model_name_or_path": "."}, r"config\.json is missing"),
        ({"base_model_name_or_path": None}, "has no 'base_model_name_or_path'"),
    ],
)
def test_what_is_not_merged_is_refused_with_the_remedy(tmp_path, settings, said):
    adapter, *_ = folders(tmp_path, **settings)
    with pytest.raises(UserError, match=said) as refused:
        load_model(adapter).logits(TOKENS)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{QUERY}.lora_A.weight", "has no matrix in the base model, or lacks one of its two"),
        ("model.layers.9.self_attn.q_proj.lora_A.weight", "has no matrix in the base model"),
        ("model.embed_tokens.lora_embedding_A", "is not merged by attlas: merge it where it was"),
    ],
)
def test_a_tensor_without_a_place_is_refused(tmp_path, name, said):
    adapter, *_ = folders(tmp_path, factors={f"base_model.model.{name}": np.ones((R, D))})
    with pytest.raises(UserError, match=said):
        load_model(adapter)


def test_a_pickled_adapter_is_not_opened(tmp_path):
    adapter, *_ = folders(tmp_path)
    (adapter / ADAPTER_TENSORS).rename(adapter / "adapter_model.bin")
    with pytest.raises(UserError, match=r"and no adapter_model\.safetensors only, a pickle"):
        load_model(adapter)


def test_an_adapter_of_a_type_that_attlas_does_not_read_is_refused_with_the_remedy(tmp_path):
    folders(tmp_path)
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    (tmp_path / "base" / "config.json").write_text(json.dumps(config | {"model_type": "olmo2"}))
    with pytest.raises(UserError, match=r"of model_type 'olmo2', .*merge_and_unload"):
        load_model(tmp_path / "adapter")
