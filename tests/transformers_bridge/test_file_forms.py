"""Pruned heads and padded vocabularies in files are read as what transformers computes."""

import json

import jax
import numpy as np
import pytest
from captured_models import library, random_model
from reference_transformers import float32_read_as_float64

torch, transformers = library()

from attlas.audit.deep_level.head_trial import HeadTrial  # noqa: E402
from attlas.audit.sequence_loss import judged_batch  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402
from attlas.transformers.file_forms import MOST_PADDING  # noqa: E402
from attlas.transformers.head_layout import check_head_layout  # noqa: E402
from attlas.transformers.load_model import load_model  # noqa: E402

PRUNED = {0: (1, 2), 1: (3,)}
"""Of four heads in each of two layers."""
ATTENTION = {
    "bert": "bert.encoder.layer.{}.attention.{}",
    "roberta": "roberta.encoder.layer.{}.attention.{}",
    "electra": "electra.encoder.layer.{}.attention.{}",
    "distilbert": "distilbert.transformer.layer.{}.attention.{}",
    "gpt2": "transformer.h.{}.attn.{}",
}
MAPS = {
    "distilbert": ("q_lin", "k_lin", "v_lin", "out_lin"),
    "gpt2": ("c_attn", "c_proj"),
}
BERT_MAPS = ("self.query", "self.key", "self.value", "output.dense")
TOKENS = np.array([5, 9, 31, 12, 44, 7])


def without_heads(name, state):
    """The matrices as transformers before version 5 left them when it had pruned the heads."""
    *inward, output = MAPS.get(name, BERT_MAPS)
    axis = 1 if name == "gpt2" else 0  # of outputs
    pruned = dict(state)
    for layer, heads in PRUNED.items():
        left = [head for head in range(4) if head not in heads]
        for role in inward:
            path = ATTENTION[name].format(layer, role)
            parts = 3 if role == "c_attn" else 1
            for key, dim in ((f"{path}.weight", axis), (f"{path}.bias", 0)):
                blocks = pruned[key].unflatten(dim, (parts, 4, 8))
                pruned[key] = blocks.index_select(dim + 1, torch.tensor(left)).flatten(dim, dim + 2)
        key = ATTENTION[name].format(layer, output) + ".weight"
        blocks = pruned[key].unflatten(1 - axis, (4, 8))
        left = torch.tensor(left)
        pruned[key] = blocks.index_select(1 - axis, left).flatten(1 - axis, 2 - axis)
    return pruned


def with_zeros(name, model):
    """The same function in the library's words: blocks of the output projection are zero."""
    weights = model.state_dict()
    for layer, heads in PRUNED.items():
        weight = weights[ATTENTION[name].format(layer, MAPS.get(name, BERT_MAPS)[-1]) + ".weight"]
        for head in heads:
            block = slice(8 * head, 8 * head + 8)
            weight[block if name == "gpt2" else (slice(None), block)] = 0
    return model


def settings_of(model):
    """The configuration, without what other models call their sizes."""
    known = transformers.AutoConfig.for_model(model.config.model_type).to_dict()
    return {key: value for key, value in model.config.to_dict().items() if key in known}


def by_library(model):
    with torch.no_grad(), float32_read_as_float64(torch):
        return model(input_ids=torch.as_tensor(TOKENS)[None]).logits[0].numpy()


@pytest.mark.parametrize("name", ATTENTION)
def test_a_model_without_some_heads_computes_what_the_library_does(name):
    model = random_model(name)
    config = settings_of(model) | {"pruned_heads": {str(k): list(v) for k, v in PRUNED.items()}}
    state = without_heads(name, model.state_dict())
    whole = by_library(model)
    expected = by_library(with_zeros(name, model))
    with jax.enable_x64(True):
        read = load_model(state, config=config)
        found = np.asarray(read.logits(TOKENS))
        attention = np.asarray(read.attention(TOKENS))
        check_head_layout(read)
        full = load_model(model.state_dict(), config=settings_of(model))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert np.abs(found - whole).max() > 0.01  # the control: the heads did something
    assert "Heads that were pruned before (layer.head 0.1, 0.2, 1.3)" in read.notes[-1]
    assert attention.shape == (2, 4, 6, 6)
    sizes = [
        sum(each.numel() for each in states.values()) for states in (model.state_dict(), state)
    ]
    assert full.parameters - read.parameters == sizes[0] - sizes[1] > 0


def test_the_order_of_pruned_heads_is_that_of_the_configuration():
    """Were the first heads put back in place of those that are named, heads would change names."""
    model = random_model("bert")
    config = settings_of(model) | {"pruned_heads": {str(k): list(v) for k, v in PRUNED.items()}}
    state = without_heads("bert", model.state_dict())
    with jax.enable_x64(True):
        pruned, whole = load_model(state, config=config), load_model(model)
        for layer, heads in PRUNED.items():
            ours, theirs = (np.asarray(each.block(layer).attention.W_Q) for each in (pruned, whole))
            for head in range(4):
                same = np.array_equal(ours[head], theirs[head])
                assert same is (head not in heads), (layer, head)
                assert ours[head].any() == same


def test_an_audit_removes_no_head_that_is_gone():
    model = random_model("gpt2")
    config = settings_of(model) | {"pruned_heads": {str(k): list(v) for k, v in PRUNED.items()}}
    with jax.enable_x64(True):
        read = load_model(without_heads("gpt2", model.state_dict()), config=config)
        trial = HeadTrial(read, judged_batch(read, [TOKENS]))
    gone = {(layer, head) for layer, heads in PRUNED.items() for head in heads}
    assert {head for heads in trial.removable for head in heads} == set(trial.heads) - gone


def test_pruned_heads_that_do_not_fit_are_refused():
    model = random_model("bert")
    config, state = settings_of(model), model.state_dict()
    with jax.enable_x64(True):
        with pytest.raises(UserError, match=r"has all heads, some of which pruned_heads"):
            load_model(state, config=config | {"pruned_heads": {"0": [1]}}).layer(0)
        fewer = without_heads("bert", state)
        other = config | {"pruned_heads": {"0": [1], "1": [3]}}
        with pytest.raises(UserError, match=r"self\.query\.weight' has shape \(16, 32\)"):
            load_model(fewer, config=other).layer(0)
        for wrong in ({"2": [0]}, {"0": [4]}, {"0": 1}, {"0": [True]}, [1]):
            with pytest.raises(UserError, match="pruned_heads"):
                load_model(fewer, config=config | {"pruned_heads": wrong}).layer(0)
    llama = random_model("llama")
    with pytest.raises(UserError, match="different numbers of heads"):
        load_model(llama.state_dict(), config=llama.config.to_dict() | {"pruned_heads": {"0": [1]}})


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gpt_neox"])
def test_rows_of_no_token_are_left_out(name, tmp_path):
    """The library pads the matrices itself; its logits of tokens do not change by it."""
    model = random_model(name)
    config = settings_of(model)
    expected = by_library(model)
    model.resize_token_embeddings(64)
    np.testing.assert_allclose(by_library(model)[:, :60], expected, rtol=1e-12)
    with jax.enable_x64(True):
        read = load_model(model.state_dict(), config=config)
        found = np.asarray(read.logits(TOKENS))
    assert found.shape == expected.shape == (6, 60)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert "64 rows, and the vocabulary 60 tokens" in read.notes[-1]
    with jax.enable_x64(True), pytest.raises(UserError, match="token 60 is outside"):
        read.read_tokens([60])
    model.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(load_model(tmp_path).logits(TOKENS), found)


@pytest.mark.parametrize("rows", [61, 64 + MOST_PADDING])
def test_rows_that_are_no_padding_are_refused(rows):
    model = random_model("gpt2")
    config = settings_of(model)
    model.resize_token_embeddings(rows)
    with jax.enable_x64(True), pytest.raises(UserError, match=f"write vocab_size = {rows} into"):
        assert load_model(model.state_dict(), config=config).embedding
