"""The exported folder is the model whose loss the audit reports, when transformers loads it."""

import json

import jax
import numpy as np
import pytest
from captured_models import library, random_model

torch, transformers = library()

from attlas.audit.audit import AuditOptions, audit  # noqa: E402
from attlas.audit.exported import export_without  # noqa: E402
from attlas.audit.opened_model import opened  # noqa: E402
from attlas.capture.rounded_blocks import rounded_blocks  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402
from attlas.transformers.pruned_folder import write_pruned_folder  # noqa: E402

SEQUENCES = list(np.random.default_rng(5).integers(5, 55, (8, 12)))
OPTIONS = AuditOptions(curvature=False, special=(1,), context=16, budget=3.0)


def loss_by_transformers(folder):
    """The library's own loss on the sequences that test, without anything of ours."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    ids = torch.as_tensor(np.stack(SEQUENCES[1::2]))
    with torch.no_grad():
        return float(model(input_ids=ids, labels=ids).loss)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "capture"), [("gpt2", True), ("olmo2", True), ("qwen3", False)])
def test_the_loss_of_the_exported_model_is_the_one_of_the_audit(tmp_path, name, capture):
    source, target = tmp_path / "model", tmp_path / "pruned"
    random_model(name).save_pretrained(source)
    with jax.enable_x64(True):
        model = opened(source, capture)
        report = audit(model, SEQUENCES, level="deep", options=OPTIONS)
        removal = report.decisions[0]
        assert removal.kind == "heads"
        assert removal.advised
        names = export_without(model, source, target, removal.heads)
    assert len(names) == len({layer for layer, _ in removal.heads})
    assert loss_by_transformers(source) == pytest.approx(removal.loss, rel=1e-5)
    expected = removal.loss + removal.change
    assert loss_by_transformers(target) == pytest.approx(expected, rel=1e-5)
    assert json.loads((target / "config.json").read_text()) == json.loads(
        (source / "config.json").read_text()
    )


def test_what_cannot_be_exported_is_refused(tmp_path):
    source = tmp_path / "model"
    random_model("gpt2").save_pretrained(source)
    model = opened(source, True)
    with pytest.raises(UserError, match="no heads can be removed"):
        export_without(model, source, tmp_path / "new", [])
    with pytest.raises(UserError, match="is there already"):
        write_pruned_folder(source, source, {})
    other = tmp_path / "other"
    random_model("gpt2", seed=1).save_pretrained(other)
    with pytest.raises(UserError, match="output projection of layer 0 is in no tensor"):
        export_without(model, other, tmp_path / "new", [(0, 0)])
    assert not (tmp_path / "new").exists()


def test_rounded_weights_come_back():
    model = random_model("gpt2")
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with rounded_blocks(model, {"transformer.h.1": 4}):
        weight = model.transformer.h[1].attn.c_attn.weight
        assert len(torch.unique(weight[:, 0])) <= 15
        assert not torch.equal(weight, before["transformer.h.1.attn.c_attn.weight"])
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
