"""A checkpoint of GPT-2-small's shape, and the command that audits it from start to page."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import additions_seconds

GPT2_SMALL = {"n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257, "n_positions": 1024}
SEQUENCES, TOKENS = 64, 256


def write_gpt2(folder: Path, layers: int) -> None:
    """A checkpoint of GPT-2-small's shape with Gaussian weights, of some of its layers."""
    from attlas.transformers.write_safetensors import write_safetensors

    rng, c = np.random.default_rng(0), {**GPT2_SMALL, "n_layer": layers}
    d = c["n_embd"]

    def normal(*shape: int) -> np.ndarray:
        return 0.02 * rng.standard_normal(shape, np.float32)

    tensors = {"wte.weight": normal(c["vocab_size"], d), "wpe.weight": normal(1024, d)}
    norms = ["ln_f"]
    for index in range(c["n_layer"]):
        norms += [f"h.{index}.ln_1", f"h.{index}.ln_2"]
        shapes = {"attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
        shapes |= {"mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d)}
        for role, shape in shapes.items():
            tensors[f"h.{index}.{role}.weight"] = normal(*shape)
            tensors[f"h.{index}.{role}.bias"] = normal(shape[1])
    for norm in norms:
        tensors |= {f"{norm}.weight": 1 + normal(d), f"{norm}.bias": normal(d)}
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **c}))


def audit_command(layers: int) -> dict[str, Any]:
    """`attlas audit --level data` as a user runs it, on two cores, of a model of some layers."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    speed = additions_seconds()
    with tempfile.TemporaryDirectory() as place:
        model, tokens, page = (Path(place) / name for name in ("model", "tokens.npy", "audit.html"))
        write_gpt2(model, layers)
        sizes = (SEQUENCES, TOKENS)
        np.save(tokens, np.random.default_rng(0).integers(0, GPT2_SMALL["vocab_size"], sizes))
        said = [sys.executable, "-m", "attlas", "--results", f"{place}/results", "audit"]
        said += [str(model), "--level", "data", "--tokens", str(tokens), "--out", str(page)]
        before, own = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(said, capture_output=True, text=True, check=False)
        wall, used = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(done.stderr)
        written = page.stat().st_size
    return {
        "command": "attlas audit MODEL --level data --tokens FILE",
        "seconds": wall,
        "cpu_seconds": used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
        "page_bytes": written,
        "findings": done.stdout.count("\n- ") + done.stdout.startswith("- "),
        "layers_measured": layers,
        "layers": GPT2_SMALL["n_layer"],
        "extrapolated": layers < GPT2_SMALL["n_layer"],
        "sequences": SEQUENCES,
        "tokens": TOKENS,
        "load": os.getloadavg()[0],
        "additions_seconds": [speed, additions_seconds()],
    }
