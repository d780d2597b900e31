"""What nobody reads in a configuration is refused by name, and no genuine checkpoint is."""

import json

import pytest
from random_checkpoints import random_checkpoint

from attlas.core.errors import UserError
from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.configuration import Configuration
from attlas.transformers.load_model import load_model
from attlas.transformers.rotary_frequencies import rotary_rule
from attlas.transformers.settings import LIBRARY, Settings, require_settings

KINDS = sorted(architecture_table())
OF_THE_LIBRARY = [kind for kind in KINDS if not kind.startswith(("attlas", "llama2.c"))]
GRANITE = {
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "logits_scaling": 16.0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}


BY_KIND_OF_LAYERS = ("full_attention", "sliding_attention")
OF_TWO_RULES = {"gemma3_text", "modernbert"}


def refusal(config):
    """What is said about a configuration, or its rule of rotary positions, without a model."""
    kind = config["model_type"]
    try:
        require_settings(config, architecture_table()[kind].SETTINGS[kind], LIBRARY)
        for layers in BY_KIND_OF_LAYERS if kind in OF_TWO_RULES else ("",):
            rotary_rule(Configuration(config), layers)
    except UserError as error:
        return str(error)
    return ""


def load(kind, **change):
    config, tensors = random_checkpoint(kind)
    return load_model(tensors, config=config | change)


def test_a_granite_checkpoint_that_calls_itself_llama_is_refused():
    load("llama")
    with pytest.raises(UserError) as refused:
        load("llama", **GRANITE)
    for key, value in GRANITE.items():
        assert f"{key} = {value}" in str(refused.value)
    assert str(refused.value).endswith(
        " in the configuration are not known to attlas for a 'llama' and may change what the model "
        "computes: correct model_type, or remove the keys from config.json if the model does not "
        "depend on them"
    )
    for key, value in GRANITE.items():
        with pytest.raises(UserError, match=f"{key} = {value} in the configuration is not known"):
            load("llama", **{key: value})


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_nobody_knows_is_refused_unless_it_says_nothing(kind):
    for nothing in (None, {}, [], ""):
        load(kind, some_multiplier=nothing)
    with pytest.raises(UserError, match=r"some_multiplier = 0\.5 in the configuration is not"):
        load(kind, some_multiplier=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_neutral_value_passes_and_another_is_refused(kind):
    for key, value in architecture_table()[kind].SETTINGS[kind].required.items():
        load(kind, **{key: value})
        other = not value if isinstance(value, bool) else 7
        with pytest.raises(UserError, match=f"{key} = {other} in the configuration is not support"):
            load(kind, **{key: other})


class Recording(dict):
    """A configuration that remembers which keys were asked for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.keys_asked = set()

    def get(self, key, default=None):
        self.keys_asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.keys_asked.add(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_asks_for_every_key_that_its_table_calls_read(kind):
    module, asked = architecture_table()[kind], set()
    table = module.SETTINGS[kind]
    window = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}
    rule = dict.fromkeys(BY_KIND_OF_LAYERS, LLAMA3) if kind in OF_TWO_RULES else LLAMA3
    for change in ({}, {"rope_parameters": rule}, window):
        if not set(change) <= set(table.read):
            continue
        config, tensors = random_checkpoint(kind)
        recording = Recording(config | change)
        model = module.read(recording, tensors, "asked")
        model.layer(0)
        assert model.embedding is not None
        assert model.readout is not None
        asked |= recording.keys_asked
    assert set(table.read) - asked == set()


@pytest.mark.parametrize("kind", OF_THE_LIBRARY)
def test_every_default_of_the_reference_library_is_known(kind):
    transformers = pytest.importorskip("transformers", reason="an extra of the tests")
    config = transformers.AutoConfig.for_model(kind)
    assert refusal(json.loads(config.to_json_string(use_diff=False))) == ""
    assert refusal(config.to_dict()) == ""


OLDER = {
    "bert": {
        "directionality": "bidi",
        "gradient_checkpointing": False,
        "output_past": True,
        "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform",
        "position_embedding_type": "absolute",
        "_num_labels": 9,
        "pruned_heads": {},
    },
    "roberta": {
        "eos_token_ids": None,
        "finetuning_task": None,
        "num_labels": 5,
        "output_past": True,
        "torchscript": False,
        "use_bfloat16": False,
        "position_embedding_type": "absolute",
    },
    "distilbert": {
        "finetuning_task": "sst-2",
        "tie_weights_": True,
        "xla_device": None,
        "prefix": None,
        "sinusoidal_pos_embds": False,
        "tie_encoder_decoder": False,
        "output_scores": False,
    },
    "albert": {"classifier_dropout_prob": 0.1, "gap_size": 0, "net_structure_type": 0},
    "gpt2": {
        "n_ctx": 1024,
        "summary_type": "cls_index",
        "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    },
    "gpt_neox": {
        "rotary_pct": 0.25,
        "rotary_emb_base": 10000,
        "rope_scaling": None,
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000,
    },
    "opt": {"activation_dropout": 0.0, "prefix": "</s>", "_remove_final_layer_norm": False},
    "llama": {
        "pretraining_tp": 1,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "mlp_bias": False,
        "max_sequence_length": 2048,
        "head_dim": None,
        "attention_bias": False,
        "_name_or_path": "somewhere",
    },
    "mistral": {"sliding_window": 4096, "rope_theta": 10000.0, "attention_dropout": 0.0},
    "qwen2": {
        "use_mrope": False,
        "use_sliding_window": False,
        "sliding_window": 32768,
        "max_window_layers": 21,
        "rope_theta": 1000000.0,
        "attention_bias": True,
    },
    "granite": {"attention_multiplier": 0.015625, "logits_scaling": 8.0, "rope_scaling": None},
    "xlm-roberta": {"output_past": True, "position_embedding_type": "absolute"},
    "camembert": {"output_past": True, "position_embedding_type": "absolute"},
    "electra": {"summary_use_proj": True, "position_embedding_type": "absolute"},
    "qwen3": {"max_window_layers": 28, "rope_scaling": None, "use_sliding_window": False},
    "gemma": {"hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh"},
    "vit": {"encoder_stride": 16, "image_size": 224, "problem_type": "single_label"},
}
EVERYWHERE = {
    "architectures": ["Any"],
    "id2label": {"0": "LABEL_0"},
    "torch_dtype": "float16",
    "transformers_version": "4.30.2",
    "use_cache": True,
}


def test_keys_of_older_releases_are_known():
    assert set(OLDER) <= set(OF_THE_LIBRARY)
    for kind, config in OLDER.items():
        assert refusal({"model_type": kind} | EVERYWHERE | config) == ""


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("bert", {"is_decoder": True}, "is_decoder = True in the configuration is not supported"),
        ("llama", {"sliding_window": 9}, "sliding_window = 9 in the configuration is not known"),
        ("qwen2", {"auto_map": {"AutoModel": "x.Y"}}, "auto_map = .* is not known"),
        ("gpt2", {"quantization_config": {"bits": 4}}, "quantization_config = .* is not known"),
        ("gpt_neox", {"rope_theta": 5}, "rope_theta = 5 in the configuration is not supported"),
        (
            "gpt_neox",
            {"partial_rotary_factor": 0.5},
            "partial_rotary_factor = 0.5 in the configuration is not supported",
        ),
        ("albert", {"\x1b[2J\n": 1}, r"^\\x1b\[2J = 1 in the configuration is not known"),
        ("vit", {3: "x" * 1000}, "^3 = 'xxx"),
    ],
)
def test_what_would_be_another_function_is_named(kind, change, said):
    config, tensors = random_checkpoint(kind)
    with pytest.raises(UserError, match=said) as refused:
        load_model(tensors, config=config | change)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("section", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"mrope_section": [1, 2]}, r"mrope_section = \[1, 2\] in the configuration is not known"),
        ({"factor": 4.0}, r"factor = 4\.0 in the configuration is not supported"),
        ({"type": "linear", "factor": 2.0, "low_freq_factor": 1.0}, r"low_freq_factor = 1\.0"),
        (LLAMA3 | {"beta_fast": 32}, "beta_fast = 32"),
    ],
)
def test_a_section_is_checked_like_the_file(section, rule, said):
    with pytest.raises(UserError, match=rf"^{section}\.{said}"):
        load("llama", **{section: rule})
    load("llama", **{section: LLAMA3 | {"attention_factor": None, "type": "llama3"}})


def test_a_table_says_one_thing_about_a_key():
    with pytest.raises(ValueError, match="named twice: \\['a'\\]"):
        Settings(read=("a",), required={"a": 1, "b": 2})
