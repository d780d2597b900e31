"""Whatever code a model attends with, its statistics are those of the weights that it returns."""

import gc
import weakref

import pytest
from captured_models import MODELS, TEXT, library, random_model

torch, transformers = library()

from attlas.core.errors import UserError  # noqa: E402
from attlas.torch import Monitor  # noqa: E402
from attlas.torch.attention_capture import captured_attention  # noqa: E402

OWN_CODE = ["falcon", "falcon with groups", "falcon with alibi", "gpt_neo", "bloom", "mpt"]
OWN_CODE += ["deberta", "deberta-v2", "mpnet"]
"""They do not take their attention from the interface of transformers."""
TEXTS = [name for name, (task, _) in MODELS.items() if task in ("CausalLM", "MaskedLM")]
CLOSE = {"rtol": 1e-4, "atol": 3e-5}
"""Some of them compute weights or sines in float32, of logits of the order of 100."""
SINKS = {"gpt_oss"}  # their weights do not add up to one: tests/torch_bridge/test_monitor.py


def padded(side):
    """Two sequences, the second of which has three tokens of padding on one side."""
    ids = torch.randint(5, 55, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    hidden = slice(6, None) if side == "right" else slice(0, 3)
    ids[1, hidden], mask[1, hidden] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


def from_weights(weights, rows):
    """Entropy, sink and gap of each head from what a model returns, row by row."""
    entropy, sink, gap = [], [], []
    for sequence, counted in enumerate(rows):
        places = counted.nonzero()[:, 0].tolist()
        seen = weights[sequence][:, places].double()  # (heads, rows, S)
        first = (seen.sum((0, 1)) > 0).nonzero()[0, 0]
        entropy.append(-(seen * seen.clamp(min=1e-300).log()).sum(-1))
        sink.append(seen[..., first])
        two = seen.topk(2, -1).values
        several = (seen > 0).sum(-1) > 1
        gap.append(torch.where(several, two[..., 0].log() - two[..., 1].log(), torch.nan))
    joined = [torch.cat(each, 1) for each in (entropy, sink, gap)]
    return joined[0].mean(1), joined[1].mean(1), joined[2].nanmedian(1).values


def measured(model, batch, tmp_path):
    return Monitor(model, batch, tmp_path / "a.monitor.jsonl").measure(0)


def assert_agrees(line, weights, rows):
    """Every layer of a line with the weights of the layer."""
    assert len(line["layers"]) == len(set(line["layers"])) == len(weights)
    for layer, each in enumerate(weights):
        expected = dict(zip(("entropy", "sink", "gap"), from_weights(each, rows), strict=True))
        for name, values in expected.items():
            found = torch.tensor(line[name][layer], dtype=torch.float64)
            torch.testing.assert_close(found, values, **CLOSE, msg=f"{name} of layer {layer}")


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    "name",
    [
        name if name in OWN_CODE else pytest.param(name, marks=pytest.mark.thorough)
        for name in TEXTS
        if name not in SINKS | {"longformer", "albert"}
    ],
)
def test_statistics_are_those_of_the_weights_that_a_model_returns(tmp_path, name, side):
    model, batch = random_model(name), padded(side)
    # In float64 some of transformers overflow where a row sees nothing, as those of padding do.
    model = model.float() if side == "left" else model
    with torch.no_grad():
        weights = model(**batch, output_attentions=True).attentions
    assert_agrees(measured(model, batch, tmp_path), weights, batch["attention_mask"].bool())


@pytest.mark.parametrize("name", OWN_CODE)
def test_the_largest_logit_is_what_the_softmax_takes(tmp_path, monkeypatch, name):
    model, batch = random_model(name), padded("right")
    line = measured(model, batch, tmp_path)
    softmax, taken = torch.nn.functional.softmax, []

    def recorded(logits, *args, **kwargs):
        taken.append(logits)
        return softmax(logits, *args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "softmax", recorded)
    with torch.no_grad():
        model(**batch)
    rows = batch["attention_mask"].bool()
    for layer, logits in enumerate(taken):
        largest = logits.transpose(1, 2)[rows].amax((0, 2)).double()
        found = torch.tensor(line["largest_logit"][layer], dtype=torch.float64)
        torch.testing.assert_close(found, largest, **CLOSE)


@pytest.mark.parametrize("name", ["gpt_neo", "falcon"])
def test_a_logit_without_a_position_is_at_most_its_size(name):
    """By Cauchy and Schwarz; with the scale of the other one it were above 1, or below 8**-0.5."""
    model = random_model(name)
    with torch.no_grad(), captured_attention(model, lambda seen: seen) as layers:
        model(**padded("right"))
    for seen in layers:
        cosine = (seen.logits / seen.size[..., None]).abs()[seen.allowed.expand_as(seen.logits)]
        assert 8**-0.5 < cosine.max() <= 1 + 1e-6


@pytest.mark.parametrize(
    ("name", "kernel"),
    [*((name, "eager") for name in OWN_CODE), ("falcon", "sdpa"), ("falcon with groups", "sdpa")],
)
def test_outputs_gradients_and_the_model_are_left_bit_for_bit(tmp_path, name, kernel):
    model, batch = random_model(name), padded("right")
    model.config._attn_implementation_internal = kernel

    def outputs():
        model.zero_grad()
        logits = model(**batch).logits
        logits.logsumexp(-1).sum().backward()
        return [logits, *(weight.grad for weight in model.parameters() if weight.grad is not None)]

    before = outputs()
    line = measured(model, batch, tmp_path)
    for first, second in zip(before, outputs(), strict=True):
        assert torch.equal(first, second)
    with captured_attention(model, lambda seen: None):
        for first, second in zip(before, outputs(), strict=True):
            assert torch.equal(first, second)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    model.config._attn_implementation_internal = "eager"
    assert_agrees(
        line, model(**batch, output_attentions=True).attentions, batch["attention_mask"].bool()
    )


def test_training_is_the_same_with_a_monitor(tmp_path):
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    weights = []
    for watched in (False, True):
        model, data = random_model("falcon").float(), padded("right")
        monitor = Monitor(model, data, tmp_path / "a.monitor.jsonl")
        trainer = transformers.Trainer(
            model,
            transformers.TrainingArguments(
                str(tmp_path / "out"), max_steps=3, per_device_train_batch_size=2, use_cpu=True,
                report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=100,
            ),
            train_dataset=[{"input_ids": row, "labels": row} for row in data["input_ids"]] * 3,
            callbacks=[monitor.callback()] if watched else [],
        )  # fmt: skip
        trainer.train()
        weights.append([weight.detach().clone() for weight in model.parameters()])
    assert all(torch.equal(first, second) for first, second in zip(*weights, strict=True))
    assert len((tmp_path / "a.monitor.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
@pytest.mark.parametrize("told", ["decoder_attention_mask", "labels"])
def test_a_decoder_beside_an_encoder_has_padding_of_its_own(tmp_path, name, told):
    model, batch = random_model(name), padded("right")
    ids = torch.randint(5, 55, (2, 9), generator=torch.Generator().manual_seed(2))
    written = torch.ones_like(ids)
    written[0, 4:] = 0
    batch["decoder_input_ids"] = ids * written
    batch[told] = written if told != "labels" else ids.masked_fill(written == 0, -100)
    with torch.no_grad():
        output = model(**batch, output_attentions=True)
    line = measured(model, batch, tmp_path)
    assert len(line["layers"]) == 6
    sides = {"encoder_attentions": [], "decoder_attentions": [], "cross_attentions": []}
    for layer, place in enumerate(line["layers"]):
        cross = "EncDecAttention" in place or "encoder_attn" in place
        side = "cross" if cross else "decoder" if "decoder" in place.split(".") else "encoder"
        sides[f"{side}_attentions"].append(layer)
    for side, layers in sides.items():
        rows = (batch["attention_mask"] if side == "encoder_attentions" else written).bool()
        chosen = {
            key: [line[key][x] for x in layers] for key in ("layers", "entropy", "sink", "gap")
        }
        assert_agrees(chosen, getattr(output, side), rows)


class Fused(torch.nn.Module):
    """Attention by PyTorch's fused kernel in one's own code."""

    def __init__(self, **settings):
        super().__init__()
        self.project, self.settings = torch.nn.Linear(8, 24), settings

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (6, 4)).transpose(1, 2).chunk(3, 1)
        if self.settings.get("enable_gqa"):
            k, v = k[:, :1], v[:, :1]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **self.settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"is_causal": True, "scale": 0.7},
        {"attn_mask": torch.ones(5, 5, dtype=torch.bool).tril()},
        {"attn_mask": torch.linspace(-1, 1, 25).reshape(5, 5).triu(1)},
        {"enable_gqa": True, "is_causal": True},
    ],
    ids=["plain", "causal", "boolean", "positions", "groups"],
)
def test_the_fused_kernel_of_torch_is_seen_in_your_own_module(settings):
    torch.manual_seed(0)
    model, x = Fused(**settings), torch.randn(2, 5, 8)
    with torch.no_grad(), captured_attention(model, lambda seen: seen) as layers:
        context = model(x)
    (seen,) = layers
    weights = seen.logits.masked_fill(~seen.allowed, -torch.inf).softmax(-1)
    values = model.project(x).unflatten(-1, (6, 4)).transpose(1, 2)[:, 4:]
    values = values[:, :1] if settings.get("enable_gqa") else values
    torch.testing.assert_close(weights @ values, context)


def test_attention_in_blocks_is_refused_by_name(tmp_path):
    model, batch = random_model("longformer"), padded("right")
    with pytest.raises(UserError, match=r"layer\.0\.attention\.self attends in blocks or windows"):
        measured(model, batch, tmp_path)
    whole = batch | {"global_attention_mask": torch.tensor([[1] + [0] * 8] * 2)}
    with pytest.raises(UserError, match="attends in blocks or windows"):
        measured(model, whole, tmp_path)
    sizes = TEXT | {"block_size": 2, "num_random_blocks": 1, "max_position_embeddings": 128}
    config = transformers.BigBirdConfig(**sizes, attention_type="block_sparse")
    ids = torch.randint(5, 55, (2, 64))
    with pytest.raises(UserError, match="attends in blocks or windows"):
        measured(transformers.BigBirdModel(config), {"input_ids": ids}, tmp_path)


def test_kernels_of_a_model_in_two_parts_are_its_own_again(tmp_path):
    model = random_model("clip")
    model.config.text_config._attn_implementation_internal = "sdpa"
    batch = padded("right") | {"pixel_values": torch.randn(2, 3, 12, 12).double()}
    assert len(measured(model, batch, tmp_path)["layers"]) == 4
    assert model.config.text_config._attn_implementation == "sdpa"
    assert model.config.vision_config._attn_implementation == "eager"


@pytest.mark.parametrize("name", ["falcon", "bloom"])
def test_maps_of_a_traced_layer_do_not_outlive_it(tmp_path, name):
    living, most = weakref.WeakSet(), []

    class Counted(Monitor):
        def _reduced(self, layer):
            gc.collect()
            most.append(len(living))
            living.add(layer.logits)
            return super()._reduced(layer)

    model = random_model(name)
    Counted(model, padded("right"), tmp_path / "a.monitor.jsonl").measure(0)
    assert len(most) == 2
    assert max(most) == 0
