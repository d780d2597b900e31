"""The audit of a model at size: seconds, memory, and peers where there are any.

GPT-2-small's shape with random weights: level weights in 15 s, level data with 64 sequences of 256
tokens in 150 s and 4 GB. Level data is measured on the layers that are asked for, and the seconds
of all twelve follow from those of the later ones, which compile nothing. Beside these parts stands
the command itself, `attlas audit --level data` from its start to the page it writes: slicing
proof, level weights, bounds, level data, interventions, page and numbers. A 7B folder that
`benchmarks.synthetic_checkpoint` wrote is streamed, likewise, when `--seven FOLDER` names it.
Spectra from k x k cores stand beside the singular values of the dense product; the removal of all
heads beside a loop over `transformers` whose output matrices lose one head at a time: ours makes
three replacements (zero, mean, uniform), the loop one, and the ratio is of removals. WeightWatcher
reads the same matrices where it is installed (`pip install --no-deps weightwatcher powerlaw`).

Each measurement is a process of its own. Wall and processor seconds are both written: other work
shares the machine, and `load` says how much. `additions_seconds` is the machine's speed right
before and after, 10 million additions of Python; `busiest_threads` the processor seconds of the
threads that worked longest: two that are alike are two cores that share the work.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.gpt2_small import GPT2_SMALL, SEQUENCES, TOKENS, audit_command, write_gpt2
from benchmarks.interleave import (
    choose_device,
    compare,
    environment,
    peak_memory,
    pin_to_one_core,
    read_cases,
    with_case,
    write_results,
)
from benchmarks.machine import additions_seconds, busiest_threads
from benchmarks.removal_products import Shape, feedforward_sizes, removal_roofline

STORIES = {
    "hidden_size": 64,
    "intermediate_size": 172,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_hidden_layers": 5,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
GPT2_TINY = {"n_embd": 128, "n_head": 8, "n_layer": 4, "vocab_size": 1000, "n_positions": 256}


class Steps:
    """Wall and processor seconds between the steps of a progress."""

    def __init__(self) -> None:
        """Start both clocks."""
        self.speed = additions_seconds()
        self.last = self.first = self._now()
        self.steps: list[list[float]] = []

    def __call__(self, done: int, all_: int) -> None:
        """A step is done."""
        now = self._now()
        self.steps.append([now[0] - self.last[0], now[1] - self.last[1]])
        self.last = now

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def report(self, layers: int) -> dict[str, Any]:
        """What was measured, and what all layers take if the later ones are like the last half."""
        wall, cpu = (self._now()[k] - self.first[k] for k in (0, 1))
        later = self.steps[len(self.steps) // 2 :]
        rest = layers - len(self.steps)
        per = [sum(step[k] for step in later) / len(later) for k in (0, 1)]
        return {
            "layers_measured": len(self.steps),
            "layers": layers,
            "seconds": wall,
            "cpu_seconds": cpu,
            "steps_seconds": [round(step[0], 3) for step in self.steps],
            "steps_cpu_seconds": [round(step[1], 3) for step in self.steps],
            "all_layers_seconds": wall + rest * per[0],
            "all_layers_cpu_seconds": cpu + rest * per[1],
            "extrapolated": rest > 0,
            "peak_bytes": peak_memory(),
            "load": os.getloadavg()[0],
            "busiest_threads": busiest_threads(4),
            "additions_seconds": [self.speed, additions_seconds()],
        }


def stream_weights(folder: str, layers: int) -> dict[str, Any]:
    """Slicing proof and level weights of the first layers of a folder."""
    import dataclasses

    from attlas.audit.audit import certificate_context
    from attlas.audit.weights_level.weights_level import weights_level
    from attlas.transformers.head_layout import check_head_layout
    from attlas.transformers.load_model import load_model

    steps = Steps()
    model = load_model(folder)
    opened = time.perf_counter() - steps.first[0]
    whole = model.layers
    model = dataclasses.replace(model, stored_layer=model.stored_layer[:layers])
    before = time.perf_counter(), time.process_time()
    check_head_layout(model)
    proof = [time.perf_counter() - before[0], time.process_time() - before[1]]
    steps.last = steps._now()
    weights_level(model, certificate_context(model), steps)
    report = steps.report(whole)
    report |= {"open_seconds": opened, "proof_seconds": proof[0], "proof_cpu_seconds": proof[1]}
    # The proof grows with the layers too.
    share = (whole - model.layers) / model.layers
    report["all_layers_seconds"] += share * proof[0]
    report["all_layers_cpu_seconds"] += share * proof[1]
    return {**report, "parameters": model.parameters}


def level_data(folder: str, layers: int) -> dict[str, Any]:
    """Level data of the first layers."""
    import dataclasses

    import numpy as np
    from threadpoolctl import threadpool_limits

    from attlas.audit.data_level.audit_data import audit_data
    from attlas.transformers.load_model import load_model

    model = load_model(folder)
    whole = model.layers
    model = dataclasses.replace(model, stored_layer=model.stored_layer[:layers])
    tokens = np.random.default_rng(0).integers(0, model.vocabulary, (SEQUENCES, TOKENS))
    steps = Steps()
    with threadpool_limits(limits=1, user_api="blas"):  # as `audit` does
        audit_data(model, list(tokens), progress=steps)
    return {**steps.report(whole), "sequences": SEQUENCES, "tokens": TOKENS}


def spectra() -> dict[str, Any]:
    """Cores of twelve heads beside the dense product of one."""
    pin_to_one_core()
    import numpy as np

    from attlas.measures.attention.product_spectrum import product_spectrum

    rng, d, k, heads = np.random.default_rng(0), 768, 64, 12
    Q, K = rng.normal(size=(2, heads, d, k)) / np.sqrt(d)

    def dense() -> np.ndarray:
        return np.linalg.svd(Q[0] @ K[0].T, compute_uv=False)[:k]

    return compare(
        f"singular values and eigenvalues of W_Q W_K', d = {d}, k = {k}, one core",
        lambda: product_spectrum(Q, K).singular,
        {"dense product, numpy.linalg.svd": dense},
        agree=lambda ours, theirs: float(np.max(np.abs(ours[0] - theirs)) / theirs[0]),
        rounds=5,
        weights={"dense product, numpy.linalg.svd": 1 / heads},
        goal={"dense product, numpy.linalg.svd": 30.0},
        clock=time.process_time,
    )


def removal_sides(
    kind: str, length: int, device: str = "cpu"
) -> tuple[Callable[[], Any], Callable[[], Any], int]:
    """All heads removed on eight sequences, ours and a loop over transformers, on a device.

    Args:
        kind: "gpt2", or anything else for a llama.
        length: tokens of each sequence.
        device: of PyTorch; ours is where JAX computes.

    Returns:
        Ours, the loop, and how many heads there are.
    """
    import numpy as np
    import torch
    import transformers

    from attlas.audit.deep_level.ablation import ablate_heads
    from attlas.audit.sequence_loss import judged_batch
    from attlas.transformers.load_model import load_model

    torch.manual_seed(0)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **GPT2_TINY, initializer_range=0.2, bos_token_id=0, eos_token_id=0
        )
        peer = transformers.GPT2LMHeadModel(config).eval()
        heads = config.n_head
    else:
        config = transformers.LlamaConfig(**STORIES, initializer_range=0.2)
        peer = transformers.LlamaForCausalLM(config).eval()
        heads = config.num_attention_heads
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (8, length))
    model = load_model(peer)
    batch = judged_batch(model, list(tokens))
    peer, words = peer.to(device), torch.tensor(tokens, device=device)
    if kind == "gpt2":
        outputs = [(block.attn.c_proj.weight, 0) for block in peer.transformer.h]
    else:
        outputs = [(layer.self_attn.o_proj.weight, 1) for layer in peer.model.layers]

    def loop() -> Any:
        found = np.zeros((len(outputs), heads))
        for layer, (weight, axis) in enumerate(outputs):
            size = weight.shape[axis] // heads
            for head in range(heads):
                place = weight.data.narrow(axis, head * size, size)
                kept = place.clone()
                place.zero_()
                with torch.no_grad():
                    logits = peer(words).logits[:, :-1]
                loss = torch.nn.functional.cross_entropy(
                    logits.reshape(-1, logits.shape[-1]), words[:, 1:].reshape(-1)
                )
                found[layer, head] = float(loss)
                place.copy_(kept)
        return found

    def ours() -> Any:
        return ablate_heads(model, batch).ablated[:, :, 0].mean(axis=-1)

    return ours, loop, len(outputs) * heads


def removal(kind: str, length: str) -> dict[str, Any]:
    """All heads removed on eight sequences, ours and a loop over transformers, on one core."""
    pin_to_one_core()
    import numpy as np
    import torch

    torch.set_num_threads(1)
    ours, loop, heads = removal_sides(kind, int(length))
    name = "loop over transformers, zeroed heads"
    found = compare(
        f"removal of all heads, {kind}, 8 x {length} tokens, one core, float32",
        ours,
        {name: loop},
        agree=lambda ours, theirs: float(np.max(np.abs(ours - theirs))),
        rounds=3,
        weights={name: 1 / 3},
        goal={name: 5.0},
        clock=time.process_time,
    )
    # `compare` weighs the loop, so that both seconds are of three removals of each head.
    roofline = removal_roofline(
        removal_shape(kind, int(length)),
        found["seconds"],
        found["peers"][name]["seconds"],
        3 * heads,
    )
    unit = "three removals of each head; the loop makes one and is charged with three"
    return {**found, "unit": unit, "roofline": roofline}


def removal_shape(kind: str, length: int) -> Shape:
    """What is multiplied in the model of a removal."""
    if kind == "gpt2":
        c = GPT2_TINY
        d, H = c["n_embd"], c["n_head"]
        sizes = tuple(feedforward_sizes(d, 4 * d, gated=False))
        return Shape(c["n_layer"], H, H, d, sizes, c["vocab_size"], 8, length)
    c = STORIES
    d, H, G = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    sizes = tuple(feedforward_sizes(d, c["intermediate_size"], gated=True))
    return Shape(c["num_hidden_layers"], H, G, d, sizes, c["vocab_size"], 8, length)


def weight_watcher(folder: str, count: str) -> dict[str, Any]:
    """Its own analysis of the attention's matrices, as a torch model, and its seconds."""
    lacking = [name for name in ("torch", "weightwatcher") if find_spec(name) is None]
    if lacking:
        return {"skipped": f"not installed: {', '.join(lacking)}"}
    import torch
    import weightwatcher

    from attlas.transformers.checkpoint_folder import read_checkpoint

    tensors = read_checkpoint(folder).tensors
    layers = torch.nn.ModuleList()
    for index in range(int(count)):
        for part in ("attn.c_attn", "attn.c_proj"):
            W = torch.tensor(tensors[f"h.{index}.{part}.weight"].T.copy())
            linear = torch.nn.Linear(W.shape[1], W.shape[0], bias=False)
            linear.weight.data = W
            layers.append(linear)
    speed = additions_seconds()
    before = time.perf_counter(), time.process_time()
    table = weightwatcher.WeightWatcher(model=layers).analyze()
    return {
        "version": weightwatcher.__version__,
        "matrices": len(table),
        "seconds": time.perf_counter() - before[0],
        "cpu_seconds": time.process_time() - before[1],
        "peak_bytes": peak_memory(),
        "load": os.getloadavg()[0],
        "additions_seconds": [speed, additions_seconds()],
        "layers_measured": int(count),
        "layers": GPT2_SMALL["n_layer"],
        "about": "fused matrices of all heads, a power law of each spectrum; no head of its own",
    }


def in_a_process(*arguments: str) -> dict[str, Any]:
    """What another process of this file printed last, or why it failed."""
    command = [sys.executable, "-m", "benchmarks.audit_speed", "--case", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": f"exit {done.returncode}: {done.stderr.strip()[-300:]}"}
    return json.loads(done.stdout.splitlines()[-1])


CASES = {
    "weights": lambda folder, layers: stream_weights(folder, int(layers)),
    "data": lambda folder, layers: level_data(folder, int(layers)),
    "command": lambda layers: audit_command(int(layers)),
    "spectra": spectra,
    "removal": removal,
    "weightwatcher": weight_watcher,
}


def main() -> None:
    """Measure and write `results/audit_speed.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs="+", help="one measurement, printed and not written")
    parser.add_argument("--data-layers", type=int, default=GPT2_SMALL["n_layer"])
    parser.add_argument("--command-layers", type=int, default=GPT2_SMALL["n_layer"])
    parser.add_argument("--seven", help="folder of benchmarks.synthetic_checkpoint")
    parser.add_argument("--seven-layers", type=int, default=4)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(CASES[given.case[0]](*given.case[1:])))
        return
    choose_device()
    goals = {"weights": {"seconds": 15}, "data": {"seconds": 150, "bytes": 4e9}}
    with tempfile.TemporaryDirectory() as place:
        write_gpt2(Path(place), GPT2_SMALL["n_layer"])
        plan = [
            ("GPT-2 small, level weights", ("weights", place, "12"), goals["weights"]),
            ("singular values of heads", ("spectra",), {}),
            ("removal of all heads, llama", ("removal", "stories260k's shape", "128"), {}),
            ("removal of all heads, GPT-2", ("removal", "gpt2", "128"), {}),
            (
                "removal of all heads, 16 tokens, llama",
                ("removal", "stories260k's shape", "16"),
                {},
            ),
            ("removal, 16 tokens, GPT-2", ("removal", "gpt2", "16"), {}),
            ("WeightWatcher on the same file", ("weightwatcher", place, "12"), {}),
            ("GPT-2 small, level data", ("data", place, str(given.data_layers)), goals["data"]),
            (
                "GPT-2 small, the command at level data",
                ("command", str(given.command_layers)),
                goals["data"],
            ),
        ]
        if given.seven:
            what = ("weights", given.seven, str(given.seven_layers))
            plan.append(("7B bfloat16 folder, level weights", what, {"bytes": 2e9}))
        # Case by case: a run that is cut short keeps what it measured, and the others'.
        cases, commit = read_cases("audit_speed"), environment()["commit"]
        for name, what, goal in plan:
            case = {"name": name, "goal": goal, "commit": commit, **in_a_process(*what)}
            print(json.dumps(case), flush=True)
            cases = with_case(cases, case)
            write_results("audit_speed", cases)


if __name__ == "__main__":
    main()
