"""Files and state dicts as other programs write them, against the library's own reading."""

import json

import numpy as np
import pytest
from random_checkpoints import random_checkpoint
from reference_transformers import libraries

from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import Unread
from attlas.transformers.load_model import load_model
from attlas.transformers.stored_names import plain_names
from attlas.transformers.write_safetensors import write_safetensors

TOKENS = np.arange(2, 11)
SMALL = {
    "vocab_size": 31,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
}


UNITS = {"gpt2": "n_inner", "opt": "ffn_dim", "distilbert": "hidden_dim"}


def settings_of(kind, **more):
    """The sizes under the names of this architecture."""
    others = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
    return others | {UNITS.get(kind, "intermediate_size"): SMALL["intermediate_size"]} | more


def unread(*names):
    one = Unread((1,), np.dtype("f4"), "memory", lambda dtype: np.ones(1, dtype))
    return dict.fromkeys(names, one)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["module.a.w", "module.b"], ["a.w", "b"]),
        (["_orig_mod.module.a", "_orig_mod.module.b"], ["a", "b"]),
        (["module._orig_mod.module.a"], ["a"]),
        (
            [
                "_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module._checkpoint_wrapped_module.w"
            ],
            ["model.layers.0.w"],
        ),
        (["module.a", "b"], ["module.a", "b"]),
        (["model.bert.a", "model.cls.b"], ["bert.a", "cls.b"]),
        (
            ["model.model.layers.0.w", "model.lm_head.weight"],
            ["model.layers.0.w", "lm_head.weight"],
        ),
        (["model.layers.0.w", "model.norm.weight"], ["model.layers.0.w", "model.norm.weight"]),
        (["a.LayerNorm.gamma", "a.LayerNorm.beta"], ["a.LayerNorm.weight", "a.LayerNorm.bias"]),
        (["layer.gamma"], ["layer.gamma"]),
    ],
)
def test_names_are_those_of_the_models_own_code(names, expected):
    assert list(plain_names(unread(*names), "it")) == expected


def test_two_tensors_of_one_name_are_refused():
    with pytest.raises(UserError, match=r"^it holds tensor 'a\.w' under two names: keep one"):
        plain_names(unread("a.w", "a._orig_mod.w"), "it")


def folder_of(tmp_path, config, tensors):
    (tmp_path / "config.json").write_text(json.dumps(config))
    single = {name: np.asarray(each, np.float32) for name, each in tensors.items()}
    write_safetensors(tmp_path / "model.safetensors", single)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        *((kind, "module.") for kind in ("llama", "bert", "opt", "gpt2")),
        *((kind, "_orig_mod.module.") for kind in ("bert", "gpt2")),
        *((kind, "model.") for kind in ("llama", "gpt_neox")),
    ],
)
def test_a_file_of_a_wrapped_model_is_the_model(tmp_path, kind, prefix):
    config, tensors = random_checkpoint(kind)
    wrapped = {prefix + name: each for name, each in tensors.items()}
    found = load_model(folder_of(tmp_path, config, wrapped))
    expected = load_model(tensors, config=config, dtype="float32")
    np.testing.assert_array_equal(found.attention(TOKENS), expected.attention(TOKENS))


def test_norms_under_their_first_names_are_read(tmp_path):
    torch, transformers = libraries()
    torch.manual_seed(0)
    model = transformers.BertForPreTraining(transformers.BertConfig(**SMALL)).eval()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): each.numpy()
        for name, each in model.state_dict().items()
        if not name.endswith("position_ids")
    }
    assert any(name.endswith("LayerNorm.gamma") for name in old)
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)[None]).prediction_logits[0].numpy()
    config = model.config.to_dict()
    found = load_model(folder_of(tmp_path, config, old)).logits(TOKENS)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2", "opt"])
def test_of_a_tied_pair_the_lm_head_suffices(tmp_path, kind):
    torch, transformers = libraries()
    torch.manual_seed(0)
    settings = settings_of(kind, tie_word_embeddings=True)
    config = transformers.AutoConfig.for_model(kind, **settings)
    if kind == "opt":
        config.word_embed_proj_dim = config.hidden_size
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)[None]).logits[0].numpy()
    tensors = {name: each.numpy() for name, each in model.state_dict().items()}
    assert "lm_head.weight" in tensors
    alone = {
        name: each
        for name, each in tensors.items()
        if not name.endswith(("embed_tokens.weight", "wte.weight"))
    }
    assert len(alone) == len(tensors) - 1
    found = load_model(folder_of(tmp_path, config.to_dict(), alone))
    assert np.abs(found.logits(TOKENS) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert found.parameters == sum(each.size for each in alone.values())


@pytest.mark.parametrize(
    "kind", ["distilbert", "bert", "roberta", "electra", "albert", "gpt2", "llama", "modernbert"]
)
def test_a_classifier_is_read_without_its_head(tmp_path, kind):
    torch, transformers = libraries()
    torch.manual_seed(0)
    settings = settings_of(kind, pad_token_id=0, num_labels=3)
    config = transformers.AutoConfig.for_model(kind, **settings)
    model = (
        transformers.AutoModelForSequenceClassification.from_config(
            config, attn_implementation="eager"
        )
    ).eval()
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        outputs = model(torch.tensor(TOKENS)[None], output_attentions=True)
    expected = np.stack([each[0].numpy() for each in outputs.attentions])
    found = load_model(tmp_path)
    assert np.abs(found.attention(TOKENS) - expected).max() <= 1e-5
    with pytest.raises(UserError, match="holds no LM head"):
        found.logits(TOKENS)


def test_an_embedding_of_more_rows_than_tokens_is_refused_with_the_remedy(tmp_path):
    config, tensors = random_checkpoint("gpt2")
    folder = folder_of(tmp_path, config | {"vocab_size": 11}, tensors)
    with pytest.raises(UserError, match=r"write vocab_size = 13 into config\.json if all of them"):
        load_model(folder)
    folder_of(tmp_path, config, tensors)
    assert load_model(folder).vocabulary == 13
