"""Tangent kernel H of the softmax network, beside the Jacobians of torch.func and of JAX.

d = 32, float32, W trained: 32 m parameters. The peers form the Jacobian J of all outputs and
samples by vmap(grad), vmap(jacrev) for many outputs, and multiply J J' / m; further rows show what
the closed form alone gives a peer, written in PyTorch and in JAX. Times are of one process, one
side after the other; memory is measured in a process for each side, as in `multi_head_kernel`.
`difference` is relative to the largest entry. The kernel of all 32 outputs of 1000 samples, 4.1 GB,
is written to disk by us alone: a Jacobian for it takes 33.6 GB, which is computed, not measured.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.kernels.softmax_network_ntk import softmax_ntk  # noqa: E402
from attlas.models.networks.softmax_network import SoftmaxNetwork  # noqa: E402
from benchmarks.multi_head_kernel import difference, resident  # noqa: E402

DIMENSION, WIDTH = 32, 8192
TORCH, JAX = "torch.func Jacobian, J J'", "JAX Jacobian, J J'"


class Problem:
    """The network and unit samples in the arrays of every side."""

    def __init__(self, n: int, outputs: int = 1, width: int = WIDTH):
        """Draw the symmetric initialisation and `n` samples."""
        rng = np.random.default_rng(outputs)
        half = rng.normal(size=(DIMENSION, width // 2)).astype(np.float32)
        signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=(outputs, width // 2))
        W, a = np.repeat(half, 2, axis=1), np.stack((signs, -signs), axis=2)
        self.network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a.reshape(outputs, width)))
        X = rng.normal(size=(n, DIMENSION))
        self.X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        self.W, self.a = (torch.tensor(np.asarray(p)) for p in (self.network.W, self.network.a))

    def ours(self) -> np.ndarray:
        """The closed form with its default budget."""
        return softmax_ntk(self.network, self.X)

    def torch_jacobian(self, X: torch.Tensor) -> torch.Tensor:
        """One row for each sample and output, the output inside."""
        of = torch.func.grad if len(self.a) == 1 else torch.func.jacrev
        return torch.func.vmap(of(torch_outputs), (None, None, 0))(self.W, self.a, X)

    def torch(self) -> np.ndarray:
        """torch.func: the Jacobian, then J J'."""
        J = self.torch_jacobian(torch.tensor(self.X)).reshape(-1, self.W.numel())
        return output_outside(((J @ J.T) / self.W.shape[1]).numpy(), len(self.a))

    def jax(self) -> np.ndarray:
        """JAX: the Jacobian, then J J', in one compiled program."""
        return np.asarray(jax_gram(self.network, jnp.asarray(self.X)))

    def torch_closed_form(self) -> np.ndarray:
        """The formula of ours for one output in PyTorch, without tiles."""
        X = torch.tensor(self.X)
        units = self.W.shape[1] * torch.softmax(X @ self.W, dim=1)
        features = (self.a[0] - (units @ self.a[0] / self.W.shape[1])[:, None]) * units
        return ((features @ features.T).mul_(X @ X.T) / self.W.shape[1]).numpy()

    def jax_closed_form(self) -> np.ndarray:
        """The formula of ours for one output in JAX, without tiles."""
        return np.asarray(jax_formula(self.network, jnp.asarray(self.X)))


def torch_outputs(W: torch.Tensor, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """F of one sample: a number for one output, else a vector."""
    return W.shape[1] * (a @ torch.softmax(x @ W, dim=0)).squeeze()


def output_outside(gram, outputs: int):
    """From row i k + l, of a Jacobian by samples, to row l n + i."""
    n = len(gram) // outputs
    return gram.reshape(n, outputs, n, outputs).transpose(1, 0, 3, 2).reshape(gram.shape)


@jax.jit
def jax_gram(network, X):
    """J J' / m by autodiff."""
    outputs, width = network.a.shape

    def value(W, x):
        F = SoftmaxNetwork(W, network.a)(x)
        return F[0] if outputs == 1 else F

    slope = jax.grad(value) if outputs == 1 else jax.jacrev(value)
    J = jax.vmap(slope, (None, 0))(network.W, X).reshape(len(X) * outputs, -1)
    return output_outside(J @ J.T / width, outputs)


@jax.jit
def jax_formula(network, X):
    """The closed form for one output."""
    units = jax.vmap(network.hidden)(X)
    features = (network.a[0] - (units @ network.a[0] / network.width)[:, None]) * units
    return (features @ features.T) * (X @ X.T) / network.width


def memory_of(side: str, n: int, outputs: int) -> dict[str, Any]:
    """Resident memory before and the peak during one call; runs in a process of its own."""
    getattr(Problem(2, outputs), side)()
    problem = Problem(n, outputs)
    # The peak of imports and compilation is forgotten: what counts is the call.
    Path("/proc/self/clear_refs").write_text("5")
    base = resident("VmRSS")
    getattr(problem, side)()
    peak = resident("VmHWM")
    return {"base_bytes": base, "peak_bytes": peak, "working_bytes": peak - base}


def in_a_process(*arguments: str) -> dict[str, Any]:
    """What another process of this file printed last, or why it failed."""
    command = [sys.executable, "-m", "benchmarks.softmax_kernel", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": f"exit {done.returncode}: {done.stderr[-300:]}"}
    return json.loads(done.stdout.splitlines()[-1])


def memory_case(n: int, outputs: int) -> dict[str, Any]:
    """One process for each side."""
    names = ("ours", "torch", "jax")
    sides = {side: in_a_process("memory", side, str(n), str(outputs)) for side in names}
    case = {"case": f"memory, n = {n}, m = {WIDTH}, {outputs} outputs", "sides": sides}
    for peer in names[1:]:
        if "failed" not in sides[peer]:
            for field in ("working_bytes", "peak_bytes"):
                case[f"ours_over_{peer}_{field}"] = sides["ours"][field] / sides[peer][field]
    print(json.dumps(case), flush=True)
    return case


def one_output(n: int = 1000) -> dict[str, Any]:
    """One output: the Jacobian, and the closed form in the frameworks of the peers."""
    problem = Problem(n)
    Problem(2).torch()
    peers = {
        TORCH: problem.torch,
        JAX: problem.jax,
        "closed form in PyTorch": problem.torch_closed_form,
        "closed form in JAX": problem.jax_closed_form,
    }
    problem.jax()
    problem.jax_closed_form()
    return compare(
        f"kernel, n = {n}, d = {DIMENSION}, m = {WIDTH}, one output, float32",
        problem.ours,
        peers,
        agree=difference,
        rounds=5,
        goal={TORCH: 30.0, JAX: 45.0},
    )


def many_outputs(width: int, rounds: int, n: int = 128) -> dict[str, Any]:
    """As many outputs as dimensions; JAX compiles within a single round."""
    problem = Problem(n, DIMENSION, width)
    if rounds > 1:
        problem.jax()
    goal = DIMENSION / 2
    return compare(
        f"kernel, n = {n}, d = {DIMENSION}, m = {width}, {DIMENSION} outputs, float32",
        problem.ours,
        {TORCH: problem.torch, JAX: problem.jax},
        agree=difference,
        rounds=rounds,
        goal={TORCH: goal, JAX: goal},
    )


def to_disk(n: int, width: int, rows: int = 16) -> dict[str, Any]:
    """All outputs into a mapped file; `rows` random rows are checked by autograd."""
    problem, size = Problem(n, DIMENSION, width), DIMENSION * n
    Problem(2, DIMENSION, width).ours()
    largest = {"RssAnon": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            largest["RssAnon"] = max(largest["RssAnon"], resident("RssAnon"))

    with tempfile.NamedTemporaryFile(dir=".", suffix=".kernel") as file:
        out = np.memmap(file.name, np.float32, "w+", shape=(size, size))
        base = resident("RssAnon")
        watcher = threading.Thread(target=watch)
        watcher.start()
        started, worked = time.perf_counter(), time.process_time()
        softmax_ntk(problem.network, problem.X, out=out)
        taken, worked = time.perf_counter() - started, time.process_time() - worked
        done.set()
        watcher.join()
        picked = np.sort(np.random.default_rng(0).choice(size, rows, replace=False))
        mine = np.array(out[np.ix_(picked, picked)])
        del out
    J = torch.cat([row_by_autograd(problem, l, i) for l, i in zip(*divmod(picked, n), strict=True)])
    return {
        "case": f"kernel to disk, n = {n}, d = {DIMENSION}, m = {width}, {DIMENSION} outputs",
        "seconds": taken,
        "cpu_seconds": worked,
        "kernel_bytes": 4 * size**2,
        "base_anonymous_bytes": base,
        "peak_anonymous_bytes": largest["RssAnon"],
        "working_anonymous_bytes": largest["RssAnon"] - base,
        "memory_goal_bytes": 2**28,
        "peak_resident_bytes_with_cached_file": resident("VmHWM"),
        "jacobian_of_a_peer_bytes_computed": 4 * size * DIMENSION * width,
        "rows_checked": rows,
        "difference": difference(mine, (J @ J.T / width).numpy()),
    }


def row_by_autograd(problem: Problem, output: int, sample: int) -> torch.Tensor:
    """The gradient of one output of one sample, as a row."""
    x, head = torch.tensor(problem.X[sample]), problem.a[output : output + 1]
    return torch.func.grad(torch_outputs)(problem.W, head, x).reshape(1, -1)


def main() -> None:
    """Measure and write `results/softmax_kernel.json`."""
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["memory"]:
        print(json.dumps(memory_of(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
        return
    if sys.argv[1:2] == ["disk"]:
        print(json.dumps(to_disk(int(sys.argv[2]), int(sys.argv[3]))))
        return
    plan = (
        one_output,
        lambda: memory_case(1000, 1),
        lambda: many_outputs(WIDTH // 4, 2),
        lambda: many_outputs(WIDTH, 1),
        lambda: memory_case(128, DIMENSION),
        lambda: in_a_process("disk", "1000", str(WIDTH)),
    )
    cases: list[dict[str, Any]] = []
    for measure in plan:
        cases.append(measure())
        # Case by case: a run that is cut short keeps what it measured.
        write_results("softmax_kernel", cases)
    print(json.dumps(cases[-1]), flush=True)


if __name__ == "__main__":
    main()
