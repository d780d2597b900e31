"""Audits of models whose layers are not those of GPT-2: caps, experts, norms on both sides."""

import numpy as np
import pytest
from random_checkpoints import random_checkpoint

from attlas.audit.audit import AuditOptions, audit
from attlas.experiments.schema import violations
from attlas.transformers.load_model import load_model


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["gemma2", "qwen2_moe", "modernbert", "phi3", "granite", "mpnet"])
def test_no_certificate_is_exceeded_by_an_attack_or_the_data(kind):
    config, tensors = random_checkpoint(kind)
    single = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    draw = np.random.default_rng(0)
    sequences = [draw.integers(2, config["vocab_size"], size) for size in (9, 8, 9)]
    options = AuditOptions(curvature=False)
    found = audit(load_model(single, config=config), sequences, level="data", options=options)
    heads = found.heads
    room = 1 + 100 * np.finfo(np.float32).eps  # the data's logits are computed in float32
    assert np.all(heads.largest_logit <= heads.logit_bound * room)
    assert np.all(heads.local_attack <= heads.local_certificate)
    assert np.all(heads.ball_attack <= heads.ball_certificate)
    assert found.facts["slicing_residual"] < 1e-10
    assert violations(found.to_json(), "audit") == ()
