"""A sharded bfloat16 checkpoint of llama's shape with random weights, and how it is read.

`python -m benchmarks.synthetic_checkpoint FOLDER` writes the shape of the 7B model: 13.5 GB, of
which 4.4 GB take disk. The attention's matrices are filled; of all others one row in 64 is, and the
rest are holes of the file, which read as zeros. `--read` then reads layer by layer and prints
seconds and the largest memory of the process. Remove the folder afterwards.
"""

import argparse
import json
import resource
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np

SEVEN_B = {"layers": 32, "width": 4096, "heads": 32, "hidden": 11008, "vocabulary": 32000}
PAGE = 4096
SPARSE = 64
"""Of the matrices outside the attention one row in this many is filled."""

Shapes = dict[str, tuple[int, ...]]


def write_checkpoint(
    folder: Path, *, layers: int, width: int, heads: int, hidden: int, vocabulary: int
) -> int:
    """Write config.json, the shards and their index; the number of stored numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    pool = _pool(width)
    places, total = {}, 0
    shards = list(_shards(layers, width, hidden, vocabulary))
    for number, shapes in enumerate(shards):
        name = f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        _write_shard(folder / name, shapes, pool, number)
        places |= dict.fromkeys(shapes, name)
        total += sum(int(np.prod(shape)) for shape in shapes.values())
    index = {"metadata": {"total_size": 2 * total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config))
    return total


def _pool(width: int) -> np.ndarray:
    """Random numbers that all matrices are cut from, each at a place of its own."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(scale=width**-0.5, size=2**23).astype("f4")
    return np.asarray(jnp.asarray(drawn, jnp.bfloat16))


def _shards(layers: int, width: int, hidden: int, vocabulary: int) -> Iterator[Shapes]:
    square, up = (width, width), (hidden, width)
    for index in range(layers):
        place = f"model.layers.{index}"
        attention = {f"{place}.self_attn.{n}_proj.weight": square for n in "qkvo"}
        units = {f"{place}.mlp.{n}_proj.weight": up for n in ("gate", "up")}
        norms = {
            f"{place}.{n}.weight": (width,) for n in ("input_layernorm", "post_attention_layernorm")
        }
        yield {**attention, **units, f"{place}.mlp.down_proj.weight": (width, hidden), **norms}
    table = (vocabulary, width)
    yield {
        "model.embed_tokens.weight": table,
        "model.norm.weight": (width,),
        "lm_head.weight": table,
    }


def _write_shard(path: Path, shapes: Shapes, pool: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    header, stop = {}, 0
    for name, shape in shapes.items():
        start, stop = stop, stop + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, stop]}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % PAGE)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + stop)
        for name, shape in shapes.items():
            first, end = header[name]["data_offsets"]
            file.seek(8 + len(text) + first)
            if len(shape) == 1:
                file.write(np.ones(shape, pool.dtype).tobytes())
            elif "self_attn" in name:
                _fill(file, (end - first) // 2, pool, rng)
            else:
                for row in range(0, shape[0], SPARSE):
                    file.seek(8 + len(text) + first + 2 * row * shape[1])
                    _fill(file, shape[1], pool, rng)


def _fill(file, count: int, pool: np.ndarray, rng: np.random.Generator) -> None:
    while count:
        start = int(rng.integers(pool.size // 2))
        part = pool[start : start + min(count, pool.size // 2)]
        file.write(part.tobytes())
        count -= part.size


def read_layers(folder: Path) -> None:
    """Read the model layer by layer and print what that takes."""
    from attlas.transformers import load_model

    start = time.perf_counter()
    model = load_model(folder)
    print(f"opened: {model.parameters} parameters, {time.perf_counter() - start:.2f} s, {_peak()}")
    for index in range(model.layers):
        start = time.perf_counter()
        size = float(jnp.abs(model.layer(index).attention.W_Q).max())
        spent = time.perf_counter() - start
        print(f"layer {index}: largest |W_Q| {size:.3f}, {spent:.2f} s, {_peak()}", flush=True)


def _peak() -> str:
    return f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB so far"


def main() -> None:
    """Write, and read if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=SEVEN_B["layers"])
    parser.add_argument("--read", action="store_true", help="read the folder, do not write it")
    given = parser.parse_args()
    if given.read:
        read_layers(given.folder)
        return
    start = time.perf_counter()
    count = write_checkpoint(given.folder, **{**SEVEN_B, "layers": given.layers})
    disk = sum(512 * path.stat().st_blocks for path in given.folder.iterdir())
    spent = time.perf_counter() - start
    print(f"{count} numbers, {2 * count / 1e9:.1f} GB, {disk / 1e9:.1f} GB of disk, {spent:.0f} s")


if __name__ == "__main__":
    main()
