"""Ensembles on an accelerator, beside PyTorch on the same one and all cores of the same machine.

Selection problems (2000 steps of normalised mirror descent, float64) and softmax networks (m = 256,
300 steps of gradient descent, float32), in growing numbers. PyTorch computes the gradient in closed
form for all models at once, launched by Python or replayed as a CUDA graph. Ours on the processor
runs in a process of its own, on all of its cores. Times are of the wall, compilation left out;
arrays come from the processor and results go back on all sides.

Then the time of 10,000 selection problems by how many train together, and the error of a float32
matrix product at JAX's precisions: attlas computes cells and claims at "highest".

`JAX_PLATFORMS=cuda python -m benchmarks accelerator`; without an accelerator nothing is measured.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from attlas.core.memory import device_memory
from attlas.data.token_selection import make_token_selection
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork
from benchmarks.interleave import compare, seconds, write_results
from gu2024exploring.library.training.softmax_regression import train_softmax_networks
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble

COUNTS, EXPONENTS = (100, 10_000), (2.0, 1.75)
RATE, STEPS, EARLY = 0.1, 2000, 100
"""Results are compared at the early step: see `selection_ensemble`."""
NETWORKS, WIDTH, DESCENT = (200, 2000), 256, 300
ROUNDS = 3


def selection(count: int, p: float) -> tuple[tuple, Callable[..., np.ndarray]]:
    """Released settings, n = 6, T = 8, d = 10, and our training of them."""
    data_key, start_key = jax.random.split(jax.random.key(0))
    data = jax.vmap(make_token_selection)(jax.random.split(data_key, count))
    data = jax.tree.map(np.asarray, data)
    starts = np.asarray(jax.random.normal(start_key, (count, 10, 10)))

    def ours(chunk: int | None = None) -> np.ndarray:
        found = train_selection_ensemble(
            data, starts, p=p, learning_rate=RATE, steps=STEPS, record_at=(EARLY, STEPS),
            chunk=chunk,
        )  # fmt: skip
        return np.asarray(found.W)[:, 0]

    return (data, starts, p, RATE, STEPS, EARLY), ours


class Networks:
    """Softmax networks of the symmetric initialisation, on shared data."""

    def __init__(self, count: int):
        """Draw them; the step size is half of the largest that the kernels at the start allow."""
        rng = np.random.default_rng(0)
        half = rng.normal(size=(count, 5, WIDTH // 2)).astype(np.float32)
        signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=(count, 1, WIDTH // 2))
        self.W = np.repeat(half, 2, axis=2)
        self.a = np.stack((signs, -signs), axis=3).reshape(count, 1, WIDTH)
        X = rng.normal(size=(20, 5))
        self.X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        self.Y = rng.choice(np.array([-1.0, 1.0], np.float32), size=(20, 1))
        kernels = [
            softmax_ntk(SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a)), self.X)
            for W, a in zip(self.W[:20], self.a[:20], strict=True)
        ]
        self.eta = float(0.5 / (WIDTH * max(np.linalg.norm(H, 2) for H in kernels)))

    def ours(self) -> np.ndarray:
        """Weights at the end."""
        found = train_softmax_networks(
            SoftmaxNetwork(jnp.asarray(self.W), jnp.asarray(self.a)), jnp.asarray(self.X),
            jnp.asarray(self.Y), step_size=self.eta, steps=DESCENT, record_at=(DESCENT,),
        )  # fmt: skip
        return np.asarray(found.last.W)

    def torch(self) -> np.ndarray:
        """The closed form of the gradient, by batched products."""
        X, y, W, a = (
            torch.tensor(each, device="cuda") for each in (self.X, self.Y, self.W, self.a)
        )
        down = X.T.expand(len(W), -1, -1)
        for _ in range(DESCENT):
            units = torch.softmax(X @ W, dim=2)
            F = WIDTH * (units @ a.mT)
            u = F - y
            W.baddbmm_(down, units.mul_(u * a - u * F / WIDTH), alpha=-self.eta * WIDTH)
        return W.cpu().numpy()


def relative(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Relative difference of all models together."""
    return float(np.linalg.norm(mine - theirs) / np.linalg.norm(theirs))


def works() -> dict[str, Callable[[], Any]]:
    """Our computations by name of the case; they run here and in the process on the processor."""
    named: dict[str, Callable[[], Any]] = {}
    for p in EXPONENTS:
        for count in COUNTS:
            named[f"selection, {count} models, p = {p:g}, float64"] = selection(count, p)[1]
    for count in NETWORKS:
        named[f"softmax networks, {count}, m = {WIDTH}, float32"] = Networks(count).ours
    return named


def on_processor() -> None:
    """Print the median seconds of each case; JAX computes on the processor here."""
    with jax.enable_x64(True):
        for name, work in works().items():
            work()
            times = [seconds(work)[0] for _ in range(ROUNDS)]
            print(json.dumps({name: statistics.median(times)}), flush=True)


def processor_seconds() -> dict[str, float]:
    """What a process on all cores of the processor takes for each case."""
    command = [sys.executable, "-m", "benchmarks.accelerator", "processor"]
    given = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: taken for row in rows for name, taken in row.items()}


def peers_of(name: str) -> dict[str, Callable[[], Any]]:
    """PyTorch on the same device, for one case."""
    from benchmarks.selection_peers import torch_batch

    if name.startswith("softmax"):
        return {"PyTorch batch, closed form": Networks(int(name.split(",")[1])).torch}
    count, p = int(name.split()[1]), float(name.split("p = ")[1].split(",")[0])
    setting, _ = selection(count, p)
    return {
        "PyTorch batch, closed form": torch_batch(*setting, device="cuda"),
        "PyTorch batch, CUDA graph": torch_batch(*setting, device="cuda", graph=True),
    }


def widths(count: int = 10_000) -> dict[str, Any]:
    """Seconds by the number of selection problems that train together."""
    _, ours = selection(count, 1.75)
    rows = {}
    for width in (500, 2000, count):
        ours(width)
        rows[str(width)] = seconds(lambda width=width: ours(width))[0]
    own = device_memory()
    case = {
        "case": f"selection, {count} models, p = 1.75, by models together",
        "seconds": rows,
        "device_memory": None if own is None else own._asdict(),
    }
    print(json.dumps(case), flush=True)
    return case


def precisions(size: int = 4096) -> dict[str, Any]:
    """Error and rate of a float32 product by JAX's precision, and of a float64 one."""
    rng = np.random.default_rng(0)
    wide = [rng.normal(size=(size, size)) for _ in range(2)]
    left, right = (jnp.asarray(each, jnp.float32) for each in wide)
    exact = np.asarray(left, float) @ np.asarray(right, float)
    rows = {}
    for precision in ("default", "high", "highest"):
        product = jax.jit(lambda a, b, precision=precision: jnp.matmul(a, b, precision=precision))
        found = np.asarray(product(left, right), float)
        taken, _ = seconds(lambda product=product: product(left, right).block_until_ready(), 0.3)
        rows[precision] = {
            "error": relative(found, exact),
            "teraflops": 2 * size**3 / taken / 1e12,
        }
    product = jax.jit(jnp.matmul)
    a, b = map(jnp.asarray, wide)
    product(a, b).block_until_ready()
    taken, _ = seconds(lambda: product(a, b).block_until_ready(), 0.3)
    rows["float64"] = {"teraflops": 2 * size**3 / taken / 1e12}
    case = {"case": f"product of {size} x {size} matrices, float32", "precisions": rows}
    print(json.dumps(case), flush=True)
    return case


def main() -> None:
    """Measure and write `results/accelerator.json`."""
    if jax.default_backend() == "cpu":
        print("no accelerator here (JAX_PLATFORMS=cuda would choose one): nothing is measured")
        return
    cases: list[dict[str, Any]] = []

    def keep(case: dict[str, Any]) -> None:
        cases.append(case)
        write_results("accelerator", cases, threads=os.cpu_count() or 1)

    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        for name, work in works().items():
            keep(compare(name, work, peers_of(name), agree=relative, rounds=ROUNDS))
        keep(precisions())
        keep(widths())
    for name, taken in processor_seconds().items():
        case = next(each for each in cases if each["case"] == name)
        case["processor"] = {"cores": os.cpu_count(), "seconds": taken}
        case["processor"]["ratio"] = taken / case["seconds"]
    write_results("accelerator", cases, threads=os.cpu_count() or 1)


if __name__ == "__main__":
    on_processor() if sys.argv[1:] == ["processor"] else main()
