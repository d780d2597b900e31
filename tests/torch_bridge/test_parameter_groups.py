"""Attention weights are found under the names of many libraries, fused ones as three blocks."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.torch import LpMirrorDescent, attention_groups, split  # noqa: E402
from attlas.torch.attention_weights import PARTS, attention_weights  # noqa: E402

SMALL = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 32,
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
THREE = [("query",), ("key",), ("value",), ("output",)]
FUSED = [PARTS[:3], ("output",)]


def of(name, **changes):
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **changes})
    return transformers.AutoModel.from_config(config)


@pytest.mark.parametrize(
    ("name", "changes", "parts", "block"),
    [
        ("GPT2", {}, FUSED, (1, 1, (16, 16, 16))),
        ("GPTNeoX", {}, FUSED, (0, 2, (8, 8, 8))),
        ("Phi3", {"num_key_value_heads": 1}, FUSED, (0, 1, (16, 8, 8))),
        ("Llama", {"num_key_value_heads": 1}, THREE, "tensor"),
        ("Bert", {}, THREE, "tensor"),
        ("OPT", {"word_embed_proj_dim": 16}, THREE, "tensor"),
        ("Falcon", {}, FUSED, "tensor"),
        ("CTRL", {"n_embd": 16, "n_layer": 1, "n_head": 2, "dff": 32}, THREE, "tensor"),
        ("CpmAnt", {"dim_head": 8, "dim_ff": 32, "prompt_types": 2}, THREE, "tensor"),
    ],
)
def test_attention_weights_are_found(name, changes, parts, block):
    found = attention_weights(of(name, **changes))
    assert sorted(weight.parts for weight in found) == sorted(parts)
    assert found[0].block == block
    assert bool(found[0].note) == (name == "Falcon")


SIZES = {"kv_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 5}
PAIR = ("key", "value")


LATENT = [(name, rank) for name in ("DeepseekV2", "DeepseekV3") for rank in (None, 7)]
LATENT += [("Glm4MoeLite", 7), ("MiniCPM3", 7), ("Youtu", 7), ("AXK1", 7), ("DeepseekV32", 7)]


@pytest.mark.parametrize(("name", "rank"), LATENT)
def test_latent_attention_has_keys_and_values_by_head(name, rank):
    if not hasattr(transformers, f"{name}Config"):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    changes = SIZES | {"q_lora_rank": rank, "first_k_dense_replace": 1, "num_key_value_heads": 2}
    model = of(name, **changes)
    found = {weight.name.split(".")[-2]: weight for weight in attention_weights(model)}
    queries = ["q_proj"] if rank is None else ["q_a_proj", "q_b_proj"]
    assert list(found) == [*queries, "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]
    assert {found[query].parts for query in queries} == {("query",)}
    shared, by_head = found["kv_a_proj_with_mqa"], found["kv_b_proj"]
    assert (shared.parts, shared.block, shared.tensor.shape) == (PAIR, "tensor", (8, 16))
    assert "all heads share" in shared.note
    assert (by_head.parts, by_head.block) == (PAIR, (0, 2, (4, 5)))
    # What the blocks say is what the model reads: without its values a head writes nothing.
    attention = model.layers[0].self_attn
    seen = []
    attention.o_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        by_head.tensor[9 + 4 : 18] = 0  # the second head's values
        model(torch.tensor([[3, 4, 5]]))
    assert seen[0][..., :5].abs().min() > 0
    assert seen[0][..., 5:].abs().max() == 0


def test_queries_in_one_matrix_with_gates_are_found_by_head():
    if not hasattr(transformers, "AXK2Config"):
        pytest.skip(f"transformers {transformers.__version__} has no AXK2")
    changes = SIZES | {"q_lora_rank": 7, "first_k_dense_replace": 1, "num_key_value_heads": 2}
    model = of("AXK2", **changes)
    found = {weight.name.split(".")[-2]: weight for weight in attention_weights(model)}
    gated = found["q_gate_proj"]
    assert (gated.parts, gated.block) == (("query",), (0, 2, (6, 5)))
    assert "the gate of the context, of each head" in gated.note
    # What the blocks say is what the model reads: the logits move with the queries alone.
    seen = []
    attention = model.layers[0].self_attn
    attention.o_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model(torch.tensor([[3, 4, 5]]))
        gated.tensor[11 + 6 : 22] = 0  # the second head's gates: all its entries are halved
        model(torch.tensor([[3, 4, 5]]))
    assert torch.equal(seen[0][..., :5], seen[1][..., :5])
    assert not torch.equal(seen[0][..., 5:], seen[1][..., 5:])


def test_deberta_has_query_key_and_value_of_each_head():
    model = of("Deberta").eval()
    found = {weight.parts: weight for weight in attention_weights(model)}
    assert found.keys() == set(FUSED)
    assert (found[PARTS[:3]].block, found[PARTS[:3]].note) == ((0, 2, (8, 8, 8)), "")
    attention = model.encoder.layer[0].attention.self
    seen = []
    attention.register_forward_hook(lambda _, inputs, output: seen.append(output[0]))
    with torch.no_grad():
        attention.v_bias.zero_()
        attention.in_proj.weight[24 + 16 : 48] = 0  # the second head's values
        model(torch.tensor([[3, 4, 5]]))
    assert seen[0][..., :8].abs().max() > 0
    assert seen[0][..., 8:].abs().max() == 0


def test_an_in_proj_that_is_no_attention_is_none():
    own = torch.nn.ModuleDict(
        {"in_proj": torch.nn.Linear(4, 12), "out_proj": torch.nn.Linear(4, 4)}
    )
    assert attention_weights(own) == []


def test_torch_layers_and_names_of_ones_own():
    layer = torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=5)
    assert [weight.parts for weight in attention_weights(layer)] == THREE
    own = torch.nn.ModuleDict({n: torch.nn.Linear(4, 4) for n in ("wq", "wk", "wv", "w1")})
    assert [weight.name for weight in attention_weights(own)] == [
        *("wq.weight", "wk.weight", "wv.weight")
    ]


def test_groups_hold_every_trainable_parameter_once_and_say_so():
    model, lines = of("GPT2"), []
    model.wpe.weight.requires_grad_(False)
    groups = attention_groups(model, 3.0, show=lines.append, lr=0.5, scaling="normalized")
    held = [id(w) for group in groups for w in group["params"]]
    assert sorted(held) == sorted(id(w) for w in model.parameters() if w.requires_grad)
    assert [(g["p"], g.get("lr")) for g in groups] == [(3.0, 0.5), (2.0, None)]
    assert lines[0] == ("p = 3.0: h.0.attn.c_attn.weight (16, 48), query + key + value, 3 blocks")
    assert lines[-1].startswith("p = 2: ")
    optimizer = LpMirrorDescent(groups, 0.1)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_what_has_no_attention_is_refused():
    with pytest.raises(UserError, match="Linear has no trainable attention weights of query"):
        attention_groups(torch.nn.Linear(2, 2), 3.0)
    with pytest.raises(UserError, match=r"parts = \['heads'\]: choose some of query"):
        attention_groups(torch.nn.MultiheadAttention(4, 2), 3.0, parts=["heads"])
    with pytest.raises(UserError, match="MultiheadAttention has attention weights alone"):
        split(torch.nn.MultiheadAttention(4, 2, bias=False), 3.0, parts=PARTS, show=None)


def test_a_split_trains_attention_by_mirror_descent_and_the_rest_by_another():
    model, lines = of("GPT2"), []
    model.wpe.weight.requires_grad_(False)
    rest = functools.partial(torch.optim.SGD, lr=0.25)
    optimizer = split(model, 1.5, rest, show=lines.append, lr=0.5, momentum=0.9)
    attention, others = optimizer.param_groups
    assert [w is model.h[0].attn.c_attn.weight for w in attention["params"]] == [True]
    assert (attention["p"], attention["lr"], attention["momentum"]) == (1.5, 0.5, 0.9)
    assert (others["lr"], others["part"]) == (0.25, 1)
    held = {id(w) for group in optimizer.param_groups for w in group["params"]}
    assert held == {id(w) for w in model.parameters() if w.requires_grad}
    assert lines[-1].startswith("SGD: ")
