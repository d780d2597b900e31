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


@pytest.mark.thorough
@pytest.mark.parametrize("capture", [True, False])
def test_layers_that_share_weights_lose_the_same_heads(tmp_path, capture):
    """Twice the layer of ALBERT, of which a file has one: what is tested is what is written."""
    source, target = tmp_path / "model", tmp_path / "pruned"
    random_model("albert").save_pretrained(source)
    options = AuditOptions(curvature=False, mask=3, special=(1, 2), context=16, budget=3.0)
    with jax.enable_x64(True):
        model = opened(source, capture, mask=3)
        removal, *_ = audit(model, SEQUENCES, level="deep", options=options).decisions
        assert removal.kind == "heads"
        assert removal.advised
        assert "(layers that share weights lose the same heads)" in removal.what
        assert {head for layer, head in removal.heads if layer == 0} == {
            head for layer, head in removal.heads if layer == 1
        }
        with pytest.raises(UserError, match=r"layers 0 and 1 share .*: remove the same heads"):
            export_without(model, source, target, [(0, 1), (1, 2)])
        (name,) = export_without(model, source, target, removal.heads)
        written = opened(target, True, mask=3)
        again = audit(written, SEQUENCES, level="deep", options=options).decisions[0]
    assert again.loss == pytest.approx(removal.loss + removal.change, rel=1e-5)
    library_model = transformers.AutoModelForMaskedLM.from_pretrained(target, dtype=torch.float64)
    columns = library_model.state_dict()[name].unflatten(1, (4, -1))
    zero = columns.abs().amax((0, 2)) == 0
    assert zero.nonzero()[:, 0].tolist() == [head for layer, head in removal.heads if layer == 0]


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
    (other / "model.safetensors").rename(other / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"has no \.safetensors files"):
        export_without(model, other, tmp_path / "new", [(0, 0)])


def test_rounded_weights_come_back():
    model = random_model("gpt2")
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with rounded_blocks(model, {"transformer.h.1": 4}):
        weight = model.transformer.h[1].attn.c_attn.weight
        assert len(torch.unique(weight[:, 0])) <= 15
        assert not torch.equal(weight, before["transformer.h.1.attn.c_attn.weight"])
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
