"""A whole audit of a small model in float32, and what an audit refuses in one line."""

import dataclasses

import numpy as np
import pytest
from random_checkpoints import random_checkpoint
from random_transformer import random_transformer

from attlas.audit.audit import AuditOptions, audit
from attlas.audit.weights_level import head_certificates
from attlas.core.errors import UserError
from attlas.experiments.schema import violations
from attlas.site.audit_page import render_audit
from attlas.transformers import load_model

pytestmark = pytest.mark.thorough  # an audit of every level first

CONFIG, TENSORS = random_checkpoint("gpt2")
SEQUENCES = [np.random.default_rng(k).integers(13, size=6) for k in range(3)]
OPTIONS = AuditOptions(curvature=False, deep_sequences=2, source="drawn for this test")


def model(shift=0.0):
    tensors = {name: (each + shift).astype(np.float32) for name, each in TENSORS.items()}
    return load_model(tensors, config=CONFIG)


@pytest.fixture(scope="module")
def deep():
    """Computed where float64 is JAX's default: nothing may widen or narrow without a word."""
    told = []
    found = audit(
        model(),
        SEQUENCES,
        level="deep",
        against=model(0.01),
        options=OPTIONS,
        progress=lambda part, done, all_: told.append((part, done == all_)),
    )
    return found, told


def test_all_levels_are_there_and_follow_the_schema(deep):
    found, told = deep
    parts = [part for part, done in told if done]
    assert parts == ["weights", "data", "deep, removals", "weights of the earlier"]
    for name in ("qk_norm", "entropy", "removal_zero", "local_certificate"):
        assert found.heads[name].shape == (2, 4)
    assert violations(found.to_json(), "audit") == ()
    assert found.facts["slicing_residual"] < 1e-10
    assert {"loss", "rank_correlation", "drift", "explained"} <= found.facts.keys()
    assert found.facts["loss_unit"] == "nats"
    assert found.facts["lazy"] in {"yes", "no"}
    assert any("0.9 to 1.1 of the change" in note for note in found.notes)
    assert found.facts["selection_rows"] == 2 * 4
    assert np.all((found.heads.locally_optimal >= 0) & (found.heads.locally_optimal <= 1))
    assert np.all(found.heads.locally_optimal_null > 0)
    assert found.model["parameters"] == model().parameters
    assert found.notes[0] == "Read: 3 sequences of 6 tokens, drawn for this test."
    assert found.notes[1].startswith("Sinks: sequences cut to their first 6 tokens (3 are as long)")
    assert "1000 bootstrap draws of the 3 sequences" in found.notes[1]
    assert any("next token" in note for note in found.notes)
    assert found.evidence_levels()["proved"]


def test_each_head_is_compared_with_the_earlier_checkpoint(deep):
    found, _ = deep
    earlier = audit(model(0.01), options=OPTIONS).heads
    for name in ("qk_norm", "ov_stable_rank", "lipschitz_bound"):
        np.testing.assert_array_equal(found.heads[f"{name}_before"], earlier[name])
        assert found.heads[f"{name}_before"].attrs["of"] == name
        assert not np.array_equal(found.heads[name], earlier[name])
    assert f"{name}_before" in found.to_pandas()
    assert violations(found.to_json(), "audit") == ()


def test_no_certificate_is_exceeded_by_an_attack_or_the_data(deep):
    heads = deep[0].heads
    room = 1 + 100 * np.finfo(np.float32).eps  # the data's logits are computed in float32
    assert np.all(heads.largest_logit <= heads.logit_bound * room)
    assert np.all(heads.local_attack <= heads.local_certificate)
    assert np.all(heads.ball_attack <= heads.ball_certificate)


def test_findings_name_what_was_done(deep):
    for finding in deep[0].findings:
        assert finding.quantity in deep[0].heads
        assert "nats changes by" in finding.effect or finding.quantity == "local_ratio"
        # two sequences at level deep leave none for a test, and nothing is called cheap by them
        assert "that chose it, since fewer than 4" in finding.effect or "attack" in finding.effect


def small_albert():
    """One stored layer that is passed twice, and a head that predicts hidden words."""
    config, tensors = random_checkpoint("albert")
    rng, narrow = np.random.default_rng(0), config["embedding_size"]
    shapes = {"dense.weight": (narrow, config["hidden_size"]), "bias": config["vocab_size"]}
    shapes |= dict.fromkeys(("dense.bias", "LayerNorm.weight", "LayerNorm.bias"), narrow)
    tensors |= {f"predictions.{name}": rng.normal(size=shape) for name, shape in shapes.items()}
    return config, {name: each.astype(np.float32) for name, each in tensors.items()}


@pytest.fixture(scope="module")
def shared():
    """Every part of level deep, curvature too."""
    config, tensors = small_albert()
    sequences = [np.random.default_rng(k).integers(3, 13, size=5) for k in range(3)]
    options = AuditOptions(mask=1, special=(2,), deep_sequences=2, curvature_sequences=1)
    return audit(load_model(tensors, config=config), sequences, level="deep", options=options)


def test_shared_layers_are_counted_once_and_measured_in_every_layer(shared):
    assert (shared.model["layers"], shared.model["stored layers"]) == (2, 1)
    assert any("2 layers share 1" in note for note in shared.notes)
    assert any("hidden tokens" in note for note in shared.notes)
    _, tensors = small_albert()
    assert shared.model["parameters"] == sum(each.size for each in tensors.values())
    assert shared.heads.entropy.shape == (2, 3)
    assert not np.array_equal(*shared.heads.entropy.values)


def test_a_page_tells_every_quantity_of_level_deep(shared):
    numbers = shared.to_json()
    assert violations(numbers, "audit") == ()
    assert numbers["protocol"]["sink_tokens"] == 5
    assert {"sink_share_natural", "sink_share_null"} <= numbers["facts"].keys()
    page = render_audit(numbers)
    assert numbers["notes"][1] in page
    assert "look mostly at the first token (Sink₁ above 0.3)" in page
    for name in numbers["heads"][0].keys() - {"layer", "head"}:
        told = numbers["quantities"][name]
        assert told.get("title") or told["of"] in numbers["quantities"], name
        assert f'"{name}"' in page, name
    for title in ("smallest Hessian eigenvalue", "change of the loss with nothing in place"):
        assert title in page


def test_offsets_that_are_too_many_to_enumerate_are_told(monkeypatch):
    config, tensors = random_checkpoint("llama")
    turning = load_model(tensors, config=config)
    every = audit(turning)
    assert not any("relative positions are too many" in note for note in every.notes)
    monkeypatch.setattr(head_certificates, "_ENUMERATED", 1)
    coarse = audit(turning)
    assert any("relative positions are too many" in note for note in coarse.notes)
    assert "relative positions are too many" in render_audit(coarse.to_json())
    assert (coarse.heads.core_bound >= every.heads.core_bound).all()


def test_weights_need_no_sequences():
    found = audit(model(), options=AuditOptions(context=4))
    assert (found.level, found.findings, found.depths.data_vars.keys()) == ("weights", (), set())
    assert found.model["tokens of certificates"] == 4


WRONG = [
    ({"level": "shallow"}, "level = 'shallow' is unknown"),
    ({"level": "data"}, "level data needs sequences"),
    ({"level": "deep"}, "level deep needs sequences"),
    ({"sequences": SEQUENCES, "against": model()}, "level data compares no checkpoints"),
    ({"sequences": []}, "no sequence"),
    ({"sequences": [[1, 2], [3, 13]]}, "sequence 1: token 13 is outside"),
    ({"sequences": [np.zeros(17, int)]}, "sequence 0: 17 tokens are more than the 16"),
    ({"options": AuditOptions(samples=0)}, "samples = 0"),
    ({"options": AuditOptions(learning_rate=-1.0)}, "learning_rate = -1.0"),
    ({"options": AuditOptions(momentum=2.0)}, "momentum = 2.0"),
    ({"options": AuditOptions(optimizer="adam")}, "second moments"),
    ({"options": AuditOptions(context=0)}, "context = 0"),
    ({"options": AuditOptions(deep_sequences=0)}, "deep_sequences = 0"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_cannot_be_audited_is_refused_in_one_line(given, said):
    sequences = given.pop("sequences", None)
    with pytest.raises(UserError, match=said) as caught:
        audit(model(), sequences, **given)
    assert "\n" not in str(caught.value)


def test_images_have_no_level_of_words():
    config, tensors = random_checkpoint("vit")
    for level in ("data", "deep"):
        with pytest.raises(UserError, match="reads images"):
            audit(load_model(tensors, config=config), SEQUENCES, level=level)


def test_heads_that_do_not_add_up_are_refused():
    wrong = dataclasses.replace(model(), fused_attention=lambda index, x: np.ones_like(x))
    with pytest.raises(UserError, match="do not add up"):
        audit(wrong)
    with pytest.raises(UserError, match="was not read from a file"):
        audit(random_transformer())
