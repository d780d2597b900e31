"""stories260K, a real model: its greedy text against llama2.c's algorithm in NumPy."""

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.architectures import llama2c
from attlas.transformers.forward import attention_weights, head_outputs

LENGTH = 255  # with the first token, llama2.c's default number of 256
WIDTH, HIDDEN, LAYERS, HEADS, GROUPS, WORDS, POSITIONS = 64, 172, 5, 8, 4, 512, 512
SIZE = WIDTH // HEADS


def safetensors(path):
    """Tensors of a file: a length, a header, then the numbers."""
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        start, stop = (end + offset for offset in entry["data_offsets"])
        assert entry["dtype"] == "F32"
        found[name] = np.frombuffer(raw[start:stop], "<f4").reshape(entry["shape"])
    return found


@pytest.fixture
def folder(data_dir):
    return data_dir / "stories260k"


@pytest.fixture
def config(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.fixture
def tensors(folder):
    return safetensors(folder / "stories260K.safetensors")


def binary(path):
    """The matrices of llama2.c's own file, version 0: seven sizes, then one block per kind."""
    numbers = np.fromfile(path, "<f4")
    sizes = np.fromfile(path, "<i4", 7)
    assert sizes.tolist() == [WIDTH, HIDDEN, LAYERS, HEADS, GROUPS, WORDS, POSITIONS]
    shapes = {
        "words": (WORDS, WIDTH),
        "rms_att": (LAYERS, WIDTH),
        "wq": (LAYERS, WIDTH, WIDTH),
        "wk": (LAYERS, GROUPS * SIZE, WIDTH),
        "wv": (LAYERS, GROUPS * SIZE, WIDTH),
        "wo": (LAYERS, WIDTH, WIDTH),
        "rms_ffn": (LAYERS, WIDTH),
        "w1": (LAYERS, HIDDEN, WIDTH),
        "w2": (LAYERS, WIDTH, HIDDEN),
        "w3": (LAYERS, HIDDEN, WIDTH),
        "rms_final": (WIDTH,),
    }
    found, at = {}, 7
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = numbers[at : at + size].reshape(shape).astype(np.float64)
        at += size
    return found


def rms(x, gain):
    return gain * x / np.sqrt(np.mean(x**2) + 1e-5)


def turn(row, position):
    """run.c: for each pair of neighbours of each head, in place."""
    row = row.copy()
    for i in range(0, row.size, 2):
        angle = position * 10000.0 ** -((i % SIZE) / SIZE)
        a, b = row[i], row[i + 1]
        row[i] = a * np.cos(angle) - b * np.sin(angle)
        row[i + 1] = a * np.sin(angle) + b * np.cos(angle)
    return row


def step(w, token, position, keys, values):
    """run.c's forward: one token, earlier keys and values kept; logits."""
    x = w["words"][token]
    for layer in range(LAYERS):
        u = rms(x, w["rms_att"][layer])
        query = turn(w["wq"][layer] @ u, position)
        keys[layer].append(turn(w["wk"][layer] @ u, position))
        values[layer].append(w["wv"][layer] @ u)
        K, V = np.array(keys[layer]), np.array(values[layer])
        mixed = np.zeros(WIDTH)
        for head in range(HEADS):
            own, group = slice(head * SIZE, (head + 1) * SIZE), head // (HEADS // GROUPS)
            shared = slice(group * SIZE, (group + 1) * SIZE)
            score = np.exp(K[:, shared] @ query[own] / np.sqrt(SIZE))
            mixed[own] = (score / score.sum()) @ V[:, shared]
        x = x + w["wo"][layer] @ mixed
        u = rms(x, w["rms_ffn"][layer])
        gate = w["w1"][layer] @ u
        x = x + w["w2"][layer] @ (gate / (1 + np.exp(-gate)) * (w["w3"][layer] @ u))
    return w["words"] @ rms(x, w["rms_final"])


def printed(piece):
    """The text of a piece: those called <0x0A> and the like are bytes."""
    byte = re.fullmatch("<0x([0-9A-F]{2})>", piece)
    return chr(int(byte[1], 16)) if byte else piece.replace("▁", " ")


@pytest.fixture(scope="module")
def decoded(data_dir):
    """Greedy tokens and all logits, token by token, in float64."""
    w = binary(data_dir / "stories260k" / "stories260K.bin")
    keys, values = [[] for _ in range(LAYERS)], [[] for _ in range(LAYERS)]
    tokens, logits = [1], []
    for position in range(LENGTH):
        logits.append(step(w, tokens[-1], position, keys, values))
        tokens.append(int(np.argmax(logits[-1])))
    return np.array(tokens), np.array(logits)


def test_greedy_text_of_stories260k_is_the_known_one(folder, config, tensors, decoded):
    tokens, expected = decoded
    model = llama2c.read(config, {k: v.astype(np.float64) for k, v in tensors.items()}, "stories")
    # Causal: row t of one pass is what decoding sees after t tokens, so that equal argmax at all
    # rows is equal text.
    logits = np.asarray(model.logits(tokens[:-1]))
    # Rounding of sums of at most HIDDEN terms, through 7 matrices a layer, with the norms'
    # amplification bounded by 10 on these hidden states.
    budget = 10 * 7 * LAYERS * HIDDEN * np.finfo(np.float64).eps * np.abs(expected).max()
    assert np.abs(logits - expected).max() <= budget
    assert np.argmax(logits, axis=-1).tolist() == tokens[1:].tolist()
    assert tokens[1:7].tolist() == [403, 407, 261, 378, 432, 383]  # README of the data

    pieces = json.loads((folder / "tok512_vocab.json").read_text())
    text = "".join(printed(pieces[token]) for token in tokens[1:]).strip()
    assert text.startswith("Once upon a time, there was a little girl named Lily.")
    assert len(text) == 564  # as printed in llama2.c's doc/stories260K.md


def test_float32_stays_float32_and_agrees(config, tensors, decoded):
    tokens, expected = decoded
    logits = llama2c.read(config, tensors, "stories").logits(tokens[:-1])
    assert logits.dtype == np.float32
    assert np.abs(np.asarray(logits) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_other_layout_of_rotation_is_noticed(config, tensors, decoded):
    tokens, _ = decoded
    model = llama2c.read(config, tensors, "stories")
    halves = dict(tensors)
    for layer in range(LAYERS):
        for matrix, blocks in (("wq", HEADS), ("wk", GROUPS)):
            name = f"layers.{layer}.attention.{matrix}.weight"
            cut = tensors[name].reshape(blocks, 2, SIZE // 2, WIDTH).swapaxes(1, 2)
            halves[name] = cut.reshape(-1, WIDTH)
    wrong = llama2c.read(config, halves, "stories").logits(tokens[:-1])
    assert np.abs(np.asarray(wrong - model.logits(tokens[:-1]))).max() > 1.0


def test_fused_attention_is_the_sum_of_the_heads(config, tensors):
    double = {k: v.astype(np.float64) for k, v in tensors.items()}
    model = llama2c.read(config, double, "stories")
    x = np.random.default_rng(0).normal(size=(6, WIDTH))
    for index in range(LAYERS):
        heads = model.layer(index).attention
        rows = jnp.asarray(x)
        outputs = head_outputs(heads, attention_weights(heads, rows), rows)
        mine = outputs.sum(axis=0) + heads.b_O[None]
        whole = llama2c.fused_attention(config, tensors, index, x)
        # Three products in a row, sums of WIDTH terms each, on logits of order 10.
        budget = 10 * 3 * WIDTH * np.finfo(np.float64).eps
        assert np.abs(np.asarray(mine) - whole).max() <= budget * np.abs(whole).max()


def test_sizes_and_parameters(config, tensors):
    model = llama2c.read(config, tensors, "stories")
    assert (model.layers, model.heads_per_layer, model.width) == (LAYERS, HEADS, WIDTH)
    assert model.parameters == sum(v.size for v in tensors.values()) == 260_032
    assert model.layer(0).attention.group == (0, 0, 1, 1, 2, 2, 3, 3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n_heads": 7}, "n_kv_heads = 4 in the configuration does not divide n_heads = 7"),
        ({"n_heads": 12}, "n_heads = 12 in the configuration does not divide dim = 64"),
        ({"n_heads": 64}, "dim / n_heads = 1 in the configuration is odd"),
        ({"rope": "halves"}, "rope = 'halves' in the configuration is not supported"),
        ({"hidden_dim": 171}, "has shape"),
        ({"n_layers": 6}, r"tensor 'layers\.5\..*' is missing, and 8 more"),
        ({"n_layers": 4}, r"tensor 'layers\.4\..*' has no place"),
        ({"norm_eps": "small"}, "norm_eps = 'small' in the configuration is not a finite number"),
        ({"dim": None}, "the configuration has no 'dim'"),
    ],
)
def test_wrong_configurations_are_one_line(config, tensors, change, text):
    with pytest.raises(UserError, match=text) as refused:
        llama2c.read(config | change, tensors, "stories").layer(0)
    assert "\n" not in str(refused.value)
