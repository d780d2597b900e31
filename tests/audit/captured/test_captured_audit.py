"""An audit by capture says what the audit by our own forward passes says, and how it was made."""

import json

import jax
import numpy as np
import pytest
from captured_models import library, random_model, random_tokens

torch, transformers = library()

from attlas.audit.audit import AuditOptions, audit  # noqa: E402
from attlas.audit.captured.captured_ablation import CapturedLoss  # noqa: E402
from attlas.audit.captured.captured_audit import recognised_heads  # noqa: E402
from attlas.audit.captured.map_observation import observe_maps, positional_heads  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.capture.model_folder import open_folder  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402
from attlas.measures.attention.map_statistics import map_statistics  # noqa: E402
from attlas.measures.attention.strong_offsets import strong_offsets  # noqa: E402
from attlas.site.audit_page import render_audit  # noqa: E402

OPTIONS = AuditOptions(curvature=False, special=(1,), mask=3, context=16)
WEIGHTS = ["qk_norm", "qk_effective_rank", "ov_norm", "ov_positivity", "read_overlap"]
CERTIFICATES = ["logit_bound", "entropy_bound", "lipschitz_bound"]
DATA = ["entropy", "confidence", "top_4", "distant_confidence", "self_mass", "special_mass"]
DATA += ["largest_logit", "sink_natural", "positional_share"]
DEEP = ["removal_zero", "removal_mean", "removal_uniform"]


def sequences():
    """Six of one length, so that means over the batch are of one batch in both."""
    return list(random_tokens(6, 12))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gpt_neox", "qwen3", "roberta", "albert"])
def test_both_ways_agree(name):
    """Two programs: ours in JAX, transformers' in PyTorch, of the same weights in float64."""
    model = random_model(name)
    with jax.enable_x64(True):
        ours = audit(model, sequences(), level="deep", capture=False, options=OPTIONS)
    theirs = audit(model, sequences(), level="deep", capture=True, options=OPTIONS)
    weights = WEIGHTS + CERTIFICATES
    for quantity in [*weights, *DATA]:
        for each in (quantity, f"{quantity}_null"):
            if each in ours.heads and each in theirs.heads and quantity != "largest_logit":
                np.testing.assert_allclose(
                    theirs.heads[each].values, ours.heads[each].values, rtol=1e-5, err_msg=each
                )
    if name not in {
        "roberta",
        "albert",
    }:  # which of its tokens are hidden is drawn in another order
        for each in DEEP:
            np.testing.assert_allclose(
                theirs.heads[each].values, ours.heads[each].values, atol=1e-5, err_msg=each
            )
        assert theirs.facts["loss"] == pytest.approx(ours.facts["loss"], rel=1e-5)


@pytest.mark.thorough
def test_a_model_that_own_reading_refuses_is_captured():
    """olmo2 is unknown to our readers; the audit runs it and says so."""
    report = audit(random_model("olmo2"), sequences(), level="data", options=OPTIONS)
    assert report.model["read by"].startswith("capture")
    assert np.isfinite(report.heads.qk_norm.values).all()
    assert np.isnan(report.heads.logit_bound.values).all()  # one norm spans all heads
    assert report.facts["slicing_residual"] < 1e-10
    page = render_audit(json.loads(json.dumps(report.to_json(), allow_nan=False)))
    assert "captured" in page


@pytest.mark.thorough
def test_an_encoder_and_a_decoder_of_different_lengths():
    report = audit(random_model("t5"), sequences(), level="deep", options=OPTIONS)
    assert report.heads.sizes["layer"] == 6
    assert np.isfinite(report.heads.entropy.values).all()
    assert np.isnan(report.heads.self_mass.values[3]).all()  # rows and columns are two texts
    assert np.isfinite(report.heads.removal_zero.values).all()


def test_an_audit_that_cannot_be_made_is_refused_with_the_remedy():
    with pytest.raises(UserError, match=r"Longformer.* attends in chunks, not by maps"):
        audit(random_model("longformer"), options=OPTIONS)
    with pytest.raises(UserError, match="capture runs a Hugging Face folder or a torch"):
        audit("nowhere", capture=True)
    model = captured_module(random_model("gpt2"))
    with pytest.raises(UserError, match="outside the vocabulary"):
        audit(model, [np.array([1, 99])], level="data")


def test_ablating_a_head_is_zeroing_its_block_of_the_output_projection():
    module = random_model("gpt2")
    model = captured_module(module)
    loss = CapturedLoss(model, sequences(), ())
    changed = loss.losses([(1, 2)], "zero")
    with torch.no_grad():
        module.transformer.h[1].attn.c_proj.weight[16:24] = 0
    np.testing.assert_allclose(loss.losses(), changed, rtol=1e-12)


def test_statistics_of_maps_are_those_of_the_measures():
    draw = np.random.default_rng(0)
    allowed = np.broadcast_to(np.tril(np.ones((7, 7), bool)), (2, 3, 7, 7))
    logits = 4 * draw.normal(size=allowed.shape)
    weights = np.where(allowed, np.exp(logits), 0)
    weights /= weights.sum(-1, keepdims=True)
    special = draw.random((2, 7)) < 0.3
    found = observe_maps(weights, logits, allowed, special)
    for k in range(2):
        every = np.ones(7, bool)
        expected = np.stack([np.asarray(e) for e in map_statistics(weights[k], every, special[k])])
        np.testing.assert_allclose(found.rows[k], expected, rtol=1e-12, atol=1e-15)
        counts = np.asarray(strong_offsets(weights[k], every & (np.arange(7) > 0)))
        share, _ = positional_heads(found.offsets[[k]], found.choosing[[k]])
        np.testing.assert_allclose(share[0], counts.max(axis=1) / 6)


def test_a_folder_is_opened_without_its_code(tmp_path):
    random_model("gpt2").save_pretrained(tmp_path / "model")
    opened = open_folder(tmp_path / "model")
    assert opened.kind == "next token"
    assert len(recognised_heads(opened)) == 2
    config = json.loads((tmp_path / "model/config.json").read_text())
    settings = config | {"model_type": "mine", "auto_map": {"AutoModelForCausalLM": "m.M"}}
    (tmp_path / "model/config.json").write_text(json.dumps(settings))
    (tmp_path / "model/m.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UserError, match="no model_type 'mine'"):
        open_folder(tmp_path / "model")
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    (tmp_path / "model/model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no \.safetensors file"):
        open_folder(tmp_path / "model")


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_a_model_without_its_tensors_is_not_drawn_at_random(tmp_path, prefix):
    from safetensors.torch import load_file, save_file

    source = tmp_path / "model"
    random_model("olmo2").save_pretrained(source)
    file = source / "model.safetensors"
    tensors = load_file(file)
    assert type(open_folder(source)).__name__ == "CapturedModel"
    save_file({prefix + name: t for name, t in tensors.items()}, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"lacks the tensor '.*' and \d+ more, .* makes no use"):
        open_folder(source)
    del tensors["model.layers.0.self_attn.q_proj.weight"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"lacks the tensor 'model\.layers\.0\.self_attn\.q_proj"):
        open_folder(source)
