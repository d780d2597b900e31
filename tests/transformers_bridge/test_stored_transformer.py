"""What the reader of tables does for any architecture, beyond the parity of each."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_checkpoints import random_checkpoint

from attlas.transformers._readers.fused_reference import fused_heads
from attlas.transformers.architectures import bert, llama
from attlas.transformers.canonical import Rotary
from attlas.transformers.forward import attended, attention_weights
from attlas.transformers.stored_tensors import StoredTensors, read_dense
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

RANDOM = np.random.default_rng(0)
MATRIX, BIAS = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=3)
STATES = RANDOM.normal(size=(4, 2))

NAMES = Names(
    tokens="tokens",
    positions="positions",
    token_types="types",
    embedding_norm="first",
    transform="transform",
    transform_norm="head_norm",
    lm_heads=("decoder",),
    lm_biases=("decoder.bias", "bias"),
    query="q",
    key="k",
    value="v",
    output="o",
    attention_norm="norm",
    inner="in",
    outer="out",
    feedforward_norm="last",
)
HEAD = ("transform.weight", "transform.bias", "head_norm.weight", "head_norm.bias")


def table(**change):
    sizes = {"width": 6, "heads": 2, "hidden": 5, "vocabulary": 7, "positions": 8, "token_types": 2}
    flags = {"eps": 1e-5, "activation": "gelu", "norm_placement": "post-norm", "causal": False}
    made = {"architecture": "any", "names": NAMES, "layers": ("0.",), **sizes, **flags, **change}
    return StoredTransformer(**made)


def tensors_of(plan, **change):
    """Every tensor that the table knows, drawn at random; None in `change` takes one away."""
    shapes = plan.shapes() | {
        "transform.weight": (6, 6),
        "decoder.weight": (7, 6),
        "decoder.bias": (7,),
        "bias": (7,),
        **dict.fromkeys(HEAD[1:], (6,)),
    }
    drawn = {name: RANDOM.normal(size=shape) for name, shape in shapes.items()}
    return {name: value for name, value in (drawn | change).items() if value is not None}


def test_shapes_count_every_number_of_a_layer_and_of_the_embedding():
    # four square matrices and two of the feedforward, their biases, two norms
    layer = 4 * 42 + 2 * 30 + 11 + 24
    assert sum(map(np.prod, table().layer_shapes("").values())) == layer
    assert sum(map(np.prod, table().shapes().values())) == 6 * (7 + 8 + 2 + 2) + layer
    assert "types.weight" not in table(token_types=0).shapes()


def test_shapes_of_grouped_gated_layers_name_every_tensor_once():
    names = NAMES._replace(gate="gate", query_norm="query_norm", key_norm="key_norm")
    biased = ("query", "key", "value")
    plan = table(names=names, groups=1, head_size=4, biased=biased, centred=False)
    shapes = plan.layer_shapes("layers.0.")
    assert shapes["layers.0.q.weight"] == (8, 6)
    assert shapes["layers.0.k.bias"] == (4,)
    assert "layers.0.o.bias" not in shapes
    assert shapes["layers.0.query_norm.weight"] == (4,)
    assert len(shapes) == 7 + 3 + 4


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"scales": (0.2,)},
        {"causal": True, "windows": (2,)},
        {"layers": ("1.", "0."), "order": (1, 0)},
        {"rotaries": (Rotary(np.ones(1), interleaved=True),)},
        {"residual_scale": 0.3},
    ],
)
def test_heads_add_up_to_the_fused_layer(change):
    plan = table(**change)
    tensors, x = tensors_of(plan), RANDOM.normal(size=(5, 6))
    attention = plan.read(tensors, "it").block(0).attention
    heads = attended(attention, attention_weights(attention, jnp.asarray(x)), jnp.asarray(x))
    fused = fused_heads(plan, tensors, 0, x)
    np.testing.assert_allclose(heads, fused, rtol=1e-10, atol=1e-12)
    wrong = fused_heads(table(**change | {"heads": 3, "rotaries": None}), tensors, 0, x)
    assert not np.allclose(heads, wrong, rtol=1e-3)


@pytest.mark.parametrize("inputs_first", [False, True])
@pytest.mark.parametrize("by_head", [False, True])
def test_a_fused_matrix_is_the_three_maps_in_one(inputs_first, by_head):
    """Against three matrices laid side by side by hand; k = 3."""
    separate = table(inputs_first=inputs_first)
    tensors = tensors_of(separate)
    axis = 1 if inputs_first else 0
    fused = dict(tensors)
    for part in ("weight", "bias"):
        maps = [fused.pop(f"0.{role}.{part}") for role in ("q", "k", "v")]
        across = axis if part == "weight" else 0
        blocks = [np.split(values, 2 if by_head else 1, axis=across) for values in maps]
        order = [block for head in zip(*blocks, strict=True) for block in head]
        fused[f"0.qkv.{part}"] = np.concatenate(order, axis=across)
    names = NAMES._replace(query="", key="", value="", fused="qkv")
    plan = table(names=names, inputs_first=inputs_first, fused_by_head=by_head)
    mine, expected = plan.read(fused, "it").block(0), separate.read(tensors, "it").block(0)
    for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O"):
        read = getattr(mine.attention, name)
        np.testing.assert_array_equal(read, getattr(expected.attention, name))


def test_flags_reach_the_layers():
    plan = table(
        layers=("0.", "1."),
        norm_placement="parallel",
        causal=True,
        scales=(0.5, 0.25),
        windows=(None, 3),
        rotaries=(Rotary(np.ones(1), interleaved=True),) * 2,
        gain_shift=1.0,
    )
    tensors = tensors_of(plan)
    block = plan.read(tensors, "it").block(1)
    assert (block.attention.scale, block.attention.window, block.attention.causal) == (
        0.25,
        3,
        True,
    )
    assert block.attention.rotary.interleaved
    assert block.norm_placement == "parallel"
    np.testing.assert_allclose(block.attention_norm.gain, 1 + tensors["1.norm.weight"], rtol=1e-6)


def test_tokens_are_of_the_first_type_from_the_first_position():
    plan = table(first_position=2)
    tensors = tensors_of(plan)
    model = plan.read(tensors, "it")
    np.testing.assert_allclose(model.embedding.kind, tensors["types.weight"][0], rtol=1e-6)
    assert model.embedding.first_position == 2
    assert model.embedding.norm.centred
    assert model.context == 6


def test_what_a_file_holds_twice_is_counted_once():
    def parameters(**change):
        tensors = tensors_of(table(), **change)
        size = sum(value.size for value in tensors.values())
        return size - table().read(tensors, "it").parameters

    shared = np.ones((7, 6))
    tied = {"tokens.weight": shared, "decoder.weight": shared}
    assert parameters() == 0
    assert parameters(**tied) == 42  # the two biases differ
    same = dict.fromkeys(("decoder.bias", "bias"), np.arange(7.0))
    assert parameters(**tied, **same) == 49
    head = table().read(tensors_of(table(), **tied, **same), "it").readout.lm_head
    assert head.W.shape == (6, 7)
    np.testing.assert_array_equal(head.b, np.arange(7.0))


def test_an_encoder_alone_has_no_lm_head():
    bare = tensors_of(table(), **dict.fromkeys((*HEAD, "decoder.weight", "decoder.bias", "bias")))
    model = table().read(bare, "it")
    assert model.readout.lm_head is None
    assert model.parameters == sum(value.size for value in bare.values())


def test_a_classifier_beside_a_masked_lm_transform_leaves_no_lm_head():
    """Nothing says that its tied embedding was trained as an LM head."""
    absent = dict.fromkeys(("decoder.weight", "decoder.bias", "bias"))
    tensors = tensors_of(table(), **absent, **{"classifier.weight": np.ones((2, 6))})
    assert table().read(tensors, "it").readout.lm_head is None


def test_a_map_is_read_with_its_bias_and_without():
    shapes = {"up.weight": (3, 2)}
    both = StoredTensors({"up.weight": MATRIX, "up.bias": BIAS}, shapes, optional={"up.bias": (3,)})
    found = read_dense(both, "up")(jnp.asarray(STATES))
    np.testing.assert_allclose(found, STATES @ MATRIX.T + BIAS, atol=1e-6)
    plain = StoredTensors({"up.weight": MATRIX}, shapes)
    found = read_dense(plain, "up")(jnp.asarray(STATES))
    np.testing.assert_allclose(found, STATES @ MATRIX.T, atol=1e-6)
    stored = StoredTensors({"up.weight": MATRIX.T}, {"up.weight": (2, 3)})
    found = read_dense(stored, "up", outputs_first=False)(jnp.asarray(STATES))
    np.testing.assert_allclose(found, STATES @ MATRIX.T, atol=1e-6)


@pytest.mark.parametrize(
    ("centred", "state", "expected"),
    [(True, [1.0, 3.0], [-1.0, 2.0]), (False, [1.0, 7.0], [0.4, 4.2])],
)
def test_a_norm_is_layer_norm_or_rms_norm(centred, state, expected):
    """(1, 3) has mean 2 and variance 1; the mean of 1 and 49 is 25."""
    stored = StoredTensors(
        {"ln.weight": np.array([2.0, 3.0]), "ln.bias": np.array([1.0, -1.0])},
        {"ln.weight": (2,), "ln.bias": (2,)},
    )
    normed = table(centred=centred, eps=0.0).norm(stored, "ln")(jnp.array([state]))
    np.testing.assert_allclose(normed, [expected], atol=1e-6)


class Counting(dict):
    """Counts what is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.read = []

    def __getitem__(self, name):
        self.read.append(name)
        return super().__getitem__(name)


def test_layers_are_read_one_at_a_time():
    config, tensors = random_checkpoint("llama")
    file = Counting(tensors)
    model = llama.read(config, file, "counted")
    assert not [name for name in file.read if ".layers." in name]
    model.layer(1)
    read = {name for name in file.read if ".layers." in name}
    assert read == {name for name in tensors if ".layers.1." in name}


def test_parameters_are_those_of_the_file_and_shared_ones_count_once():
    config, tensors = random_checkpoint("llama")
    size = sum(tensor.size for tensor in tensors.values())
    assert llama.read(config, tensors, "untied").parameters == size
    tied = {"tie_word_embeddings": True}
    embedding = tensors["model.embed_tokens.weight"]
    shared = tensors | {"lm_head.weight": embedding.copy()}
    assert llama.read(config | tied, shared, "shared").parameters == size - embedding.size
    del shared["lm_head.weight"]
    model = llama.read(config | tied, shared, "shared")
    assert model.parameters == size - embedding.size
    assert model.readout.lm_head is not None
    assert np.array_equal(model.readout.lm_head.W, embedding.T)
    assert llama.read(config, shared, "bare").readout.lm_head is None


def test_a_file_of_the_architecture_has_these_shapes():
    config, tensors = random_checkpoint("bert")
    assert bert.read(config, tensors, "bert").parameters == sum(t.size for t in tensors.values())
