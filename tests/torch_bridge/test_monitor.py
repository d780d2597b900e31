"""What the monitor sees is what the model does; its lines; the Trainer."""

import gc
import json
import math
import weakref

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.site.monitors import parse_monitor  # noqa: E402
from attlas.torch import LpMirrorDescent, Monitor, attention_groups  # noqa: E402
from attlas.torch.attention_capture import captured_attention  # noqa: E402
from attlas.torch.head_statistics import head_statistics  # noqa: E402

SMALL = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def language_model(name="GPT2"):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SMALL)
    return transformers.AutoModelForCausalLM.from_config(config)


def batch():
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 50, (2, 7), generator=draw)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("name", ["GPT2", "GPTNeoX", "OPT", "Llama", "Qwen3", "Bert"])
def test_attention_of_transformers_is_that_of_its_eager_code(name):
    """The weights from our logits are those it returns, and the model computes the same."""
    torch.manual_seed(0)
    changes = {"OPT": {"word_embed_proj_dim": 16}, "Qwen3": {"num_key_value_heads": 1}}.get(
        name, {}
    )
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **changes})
    model = transformers.AutoModel.from_config(config).eval()
    model.set_attn_implementation("eager")
    rows = batch()["attention_mask"].bool()
    with torch.no_grad():
        expected = model(**batch(), output_attentions=True)
        with captured_attention(model, lambda layer: layer) as seen:
            found = model(**batch())[0]
    assert model.config._attn_implementation == "eager"
    assert len(seen) == len(expected.attentions) == 2
    close = {"rtol": 1e-4, "atol": 64 * torch.finfo(torch.float32).eps}
    assert torch.allclose(found[rows], expected[0][rows], **close)
    for each, weights in zip(seen, expected.attentions, strict=True):
        ours = each.logits.masked_fill(~each.allowed, -torch.inf).softmax(-1).transpose(1, 2)
        assert torch.allclose(ours[rows], weights.transpose(1, 2)[rows], **close)


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_of_torch_is_what_it_returns(batch_first):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()
    torch.nn.init.normal_(layer.in_proj_bias)
    x = torch.randn(3, 5, 8)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[0, 3:] = True
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    given = x if batch_first else x.transpose(0, 1)
    with torch.no_grad(), captured_attention(layer, lambda layer: layer) as seen:
        _, weights = layer(
            *(given, given, given), key_padding_mask=padding, attn_mask=causal,
            average_attn_weights=False,
        )  # fmt: skip
    ours = seen[0].logits.masked_fill(~seen[0].allowed, -torch.inf).softmax(-1)
    assert torch.allclose(ours, weights, atol=16 * torch.finfo(torch.float32).eps)


def test_an_encoder_in_evaluation_mode_does_not_hide_its_attention():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    fast = torch.backends.mha.get_fastpath_enabled()
    with torch.no_grad(), captured_attention(model, lambda layer: layer) as seen:
        model(torch.randn(2, 4, 8))
    assert [each.name for each in seen] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_statistics_of_rows_that_are_known():
    """Uniform causal rows: entropy the mean of log t, sink the mean of 1 / t; two equal logits."""
    T = 6
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    everything = torch.ones(1, T, dtype=torch.bool)
    logits = torch.zeros(1, 2, T, T, dtype=torch.float64)
    logits[:, 1, :, 1] = 3.0
    found = head_statistics(logits, causal, everything, torch.full((1, 2, T), 6.0))
    entropy = sum(math.log(t) for t in range(1, T + 1)) / T
    assert found["entropy"][0].item() == pytest.approx(entropy, rel=1e-14)
    assert found["sink"][0].item() == pytest.approx(sum(1 / t for t in range(1, T + 1)) / T)
    assert found["largest_logit"].tolist() == [0.0, 3.0]
    assert found["gap"].tolist() == [0.0, 3.0]
    assert found["margin"].tolist() == [0.0, 0.5]
    rows = everything.clone()
    rows[0, 1:] = False
    alone = head_statistics(logits, causal, rows)
    assert alone["entropy"].tolist() == [0.0, 0.0]
    assert torch.isnan(alone["gap"]).all()


def test_padding_does_not_count(tmp_path):
    """A sequence has the same statistics alone as padded, for a causal model with positions."""
    model, both = language_model(), batch()
    short = {name: value[1:, :5] for name, value in both.items()}
    padded = {name: value[1:] for name, value in both.items()}
    path = tmp_path / "a.monitor.jsonl"
    found = [Monitor(model, each, path).measure(0) for each in (short, padded)]
    for name in ("entropy", "largest_logit", "sink", "gap"):
        left, right = (torch.tensor(line[name]) for line in found)
        assert torch.allclose(left, right, atol=1e-5)


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_padding_on_the_left_does_not_hide_the_sink(tmp_path, name):
    """A batch has the same statistics padded on either side, though column 0 holds a pad."""
    model, both = language_model(name), batch()
    padded = {key: value.clone() for key, value in both.items()}
    padded["input_ids"][1] = torch.cat([torch.tensor([0, 0]), both["input_ids"][1, :5]])
    padded["attention_mask"][1] = torch.tensor([0, 0, 1, 1, 1, 1, 1])
    places = torch.stack([torch.arange(7), torch.tensor([0, 0, 0, 1, 2, 3, 4])])
    padded["position_ids"] = places
    path = tmp_path / "a.monitor.jsonl"
    found = [Monitor(model, each, path).measure(0) for each in (both, padded)]
    for name in ("entropy", "largest_logit", "sink", "gap"):
        right, left = (torch.tensor(line[name]) for line in found)
        assert torch.allclose(right, left, atol=1e-5), name


class Holder(torch.nn.Module):
    """A module that holds a model, as those of distributed training do."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def _with_adapter(model):
    peft = pytest.importorskip("peft", reason="peft is not installed")
    # Its second factor is zero at first, so that the model computes what it did.
    changes = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    return peft.get_peft_model(model, changes)


# Both of the libraries, about each other.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("wrap", [Holder, torch.nn.DataParallel, torch.compile, _with_adapter])
def test_a_model_inside_a_wrapper_is_seen(tmp_path, wrap):
    bare = Monitor(language_model(), batch(), tmp_path / "a.monitor.jsonl").measure(0)
    model = language_model()
    wrapped = wrap(model)
    line = Monitor(wrapped, batch(), tmp_path / "b.monitor.jsonl").measure(0)
    assert [name.split("transformer.")[-1] for name in line["layers"]] == [
        name.split("transformer.")[-1] for name in bare["layers"]
    ]
    for name in ("entropy", "largest_logit", "sink", "gap"):
        assert torch.allclose(torch.tensor(line[name]), torch.tensor(bare[name]), atol=1e-6), name
    assert model.config._attn_implementation == language_model().config._attn_implementation


def test_the_model_is_left_as_it_was(tmp_path):
    model = language_model().train()
    model.transformer.h[0].eval()
    before = model.config._attn_implementation
    monitor = Monitor(model, batch(), tmp_path / "a.monitor.jsonl", every=2)
    state = torch.get_rng_state()
    assert monitor(1) is None
    assert monitor(2)["step"] == 2
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert not model.transformer.h[0].training
    assert model.config._attn_implementation == before
    assert all(w.grad is None for w in model.parameters())


def test_one_line_with_the_trainer(tmp_path):
    """Mirror descent and the monitor through `transformers.Trainer`; a report can read the file."""
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    model, data = language_model(), batch()
    rows = [{"input_ids": row, "labels": row} for row in data["input_ids"].repeat(4, 1)]
    before = model.transformer.h[0].attn.c_attn.weight.detach().clone()
    path = tmp_path / "run.monitor.jsonl"
    monitor = Monitor(model, data, path, every=2)
    groups = attention_groups(model, p=3.0, show=None)
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(
            str(tmp_path / "out"), max_steps=4, per_device_train_batch_size=2, use_cpu=True,
            report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=100,
        ),
        train_dataset=rows,
        optimizer_cls_and_kwargs=(LpMirrorDescent, {"params": groups, "lr": 0.1}),
        callbacks=[monitor.callback()],
    )  # fmt: skip
    trainer.train()
    inner = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    assert isinstance(inner, LpMirrorDescent)
    exponent = {id(w): group["p"] for group in inner.param_groups for w in group["params"]}
    attention = {f"transformer.h.{layer}.attn.c_attn.weight" for layer in range(2)}
    for name, w in model.named_parameters():  # embeddings, norms and biases descend as ever
        assert exponent[id(w)] == (3.0 if name in attention else 2.0), name
    assert not torch.equal(model.transformer.h[0].attn.c_attn.weight, before)
    run, wrong = parse_monitor(path.read_bytes())
    assert wrong == []
    assert run.steps.tolist() == [0, 2, 4]
    assert run.T == 7
    assert run.values["entropy"].shape == (3, 2, 2)
    assert json.loads(path.read_text().splitlines()[0])["layers"][0] == "transformer.h.0.attn"


def test_what_cannot_be_monitored_is_refused(tmp_path):
    good = tmp_path / "a.monitor.jsonl"
    with pytest.raises(UserError, match=r"give a name that ends in \.monitor\.jsonl"):
        Monitor(torch.nn.Linear(2, 2), torch.ones(1, 2), tmp_path / "a.json")
    with pytest.raises(UserError, match="every = 0 is not a number of steps"):
        Monitor(torch.nn.Linear(2, 2), torch.ones(1, 2), good, every=0)
    with pytest.raises(UserError, match="Linear ran no attention that can be seen"):
        Monitor(torch.nn.Linear(2, 2), torch.ones(1, 2), good)(0)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Monitor(torch.nn.Linear(2, 2), None, tmp_path / "file" / "a.monitor.jsonl")


def with_sinks():
    torch.manual_seed(0)
    config = transformers.GptOssConfig(
        **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=1, head_dim=8,
        num_local_experts=2, num_experts_per_tok=1, sliding_window=4,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("sinks"):
                parameter.copy_(torch.randn_like(parameter))
    return model


def test_learned_sinks_take_their_share_of_the_weight(tmp_path):
    """As eager gpt-oss computes it: weights of keys add up to less than one."""
    model = with_sinks()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**batch(), output_attentions=True)
        with captured_attention(model, lambda layer: layer) as seen:
            found = model(**batch())
    rows = batch()["attention_mask"].bool()
    assert torch.allclose(found.logits[rows], expected.logits[rows], rtol=1e-4, atol=1e-5)
    line = Monitor(model, batch(), tmp_path / "a.monitor.jsonl").measure(0)
    for layer, weights in enumerate(expected.attentions):
        first = weights[..., 0].transpose(1, 2)[rows].mean(0)
        assert torch.allclose(torch.tensor(line["sink"][layer]), first, atol=1e-5)
        nothing = 1 - weights.sum(-1)
        assert (nothing.transpose(1, 2)[rows] > 1e-3).all()
        each = -(weights * weights.clamp(min=1e-30).log()).sum(-1) - nothing * nothing.log()
        entropy = each.transpose(1, 2)[rows].mean(0)
        assert torch.allclose(torch.tensor(line["entropy"][layer]), entropy, atol=1e-5)
    without = head_statistics(
        seen[0].logits, seen[0].allowed, rows, seen[0].size
    )  # the control: without them the weight is larger
    assert (without["sink"] > torch.tensor(line["sink"][0]) + 1e-4).all()


def test_maps_are_reduced_layer_by_layer(tmp_path, monkeypatch):
    """At most the maps of one layer live when the next one begins."""
    living, most = weakref.WeakSet(), []

    class Counted(Monitor):
        def _reduced(self, layer):
            gc.collect()
            most.append(len(living))
            living.add(layer.logits)
            return super()._reduced(layer)

    model = with_sinks()
    Counted(model, batch(), tmp_path / "a.monitor.jsonl").measure(0)
    assert len(most) == 3
    assert max(most) <= 1
    living.clear()
    with torch.no_grad(), captured_attention(model, lambda layer: layer) as seen:
        model(**batch())
    assert len(seen) == 3  # the control: whoever holds the layers has the maps of all
