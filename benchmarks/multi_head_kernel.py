"""Neural tangent Gram of the multi-head model, beside the Jacobian of torch.func and of JAX.

T = 10, d = 20, H = 256, float32, so 153,600 parameters. The peers form the Jacobian J of all
samples by vmap(grad) and multiply J J'; they contract decoders and key-query matrices apart, so
that J is never copied. The strongest use of PyTorch that we could build is the closed form by
blocks of 16 heads: algebra that anyone may copy. What is ours beyond it is half of the product
(only one triangle is computed) and features that are written where BLAS reads them. `limit` is that
product alone, one triangle of F F' for features that are there. Times are processor time of one
process, one side after the other; memory is measured in a process for each side: `base_bytes` is
resident after imports, inputs and a call with two samples, `working_bytes` the peak above it, with
the output. `difference` is relative to the largest entry.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from scipy.linalg.blas import ssyrk  # noqa: E402

from attlas.kernels.multi_head_ntk import ntk_gram  # noqa: E402
from benchmarks.multi_head_peers import parameters, tokens, torch_outputs  # noqa: E402
from benchmarks.torch_closed_forms import tangent_gram  # noqa: E402

HEADS, TOKENS, DIMENSION, SCALE = 256, 10, 20, 0.3
MEBIBYTE = 2**20
CLOSED, LIMIT = "closed form in PyTorch, 16 heads a block", "its products alone, one triangle"


class Problem:
    """The model and samples in the arrays of every side."""

    def __init__(self, n: int):
        """Draw `n` samples; the model is the same for all n."""
        self.model = parameters((HEADS, TOKENS, DIMENSION), SCALE, np.float32)
        self.X = tokens(n, TOKENS, DIMENSION, np.float32)[0]
        self.U, self.W = (torch.tensor(np.asarray(a)) for a in (self.model.U, self.model.W))

    def ours(self) -> np.ndarray:
        """The closed form with its default budget."""
        return ntk_gram(self.model, self.X)

    def torch(self) -> np.ndarray:
        """torch.func: vmap(grad), then J J'."""
        slopes = torch.func.vmap(torch.func.grad(torch_outputs, argnums=(0, 1)), (None, None, 0))
        along_U, along_W = (a.flatten(1) for a in slopes(self.U, self.W, torch.tensor(self.X)))
        return torch.addmm(along_U @ along_U.T, along_W, along_W.T).numpy()

    def closed_form(self) -> np.ndarray:
        """The closed form in PyTorch, by blocks of heads."""
        return tangent_gram(self.U, self.W, torch.tensor(self.X)).numpy()

    def limit(self) -> None:
        """One triangle of F F', block by block, for features that are there."""
        n, width = len(self.X), 16 * DIMENSION * (TOKENS + DIMENSION)
        features, gram = (
            np.ones((width, n), np.float32, order="F"),
            np.zeros((n, n), np.float32, "F"),
        )
        for _ in range(HEADS // 16):
            ssyrk(1.0, features, beta=1.0, c=gram, trans=1, overwrite_c=1)

    def jax(self) -> np.ndarray:
        """JAX: vmap(grad), then J J', in one compiled program."""
        return np.asarray(jax_gram(self.model, jnp.asarray(self.X)))


@jax.jit
def jax_gram(model, X):
    """J J' by autodiff."""
    slope = jax.vmap(jax.grad(lambda model, x: model(x)), (None, 0))(model, X)
    along_U, along_W = (a.reshape(len(X), -1) for a in (slope.U, slope.W))
    return along_U @ along_U.T + along_W @ along_W.T


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference over the largest entry."""
    return float(np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs)))


def resident(field: str) -> int:
    """VmRSS (now) or VmHWM (peak) of this process, bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in lines if row.startswith(field))


def memory_of(side: str, n: int) -> dict[str, Any]:
    """Resident memory before and the peak during one call; runs in a process of its own."""
    getattr(Problem(2), side)()
    problem = Problem(n)
    # The peak of imports and compilation is forgotten: what counts is the call.
    Path("/proc/self/clear_refs").write_text("5")
    base = resident("VmRSS")
    getattr(problem, side)()
    peak = resident("VmHWM")
    return {"base_bytes": base, "peak_bytes": peak, "working_bytes": peak - base}


def memory_case(n: int, goal: dict[str, float]) -> dict[str, Any]:
    """One process for each side."""
    sides = {}
    for side in ("ours", "torch", "jax"):
        command = [sys.executable, "-m", "benchmarks.multi_head_kernel", "memory", side, str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sides[side] = {"failed": f"exit {done.returncode}: {done.stderr[-300:]}"}
        else:
            sides[side] = json.loads(done.stdout.splitlines()[-1])
    case = {"case": f"memory, n = {n}", "sides": sides, "goal": goal}
    for peer in ("torch", "jax"):
        if "failed" not in sides[peer]:
            for field in ("working_bytes", "peak_bytes"):
                case[f"ours_over_{peer}_{field}"] = sides["ours"][field] / sides[peer][field]
    print(json.dumps(case), flush=True)
    return case


def time_case(n: int, rounds: int, goal: float) -> dict[str, Any]:
    """Times, one side after the other in every round; JAX compiles within a single one."""
    problem = Problem(n)
    Problem(2).torch()
    problem.closed_form()
    if rounds > 1:
        problem.jax()
    return compare(
        f"NTK Gram, n = {n}, T = {TOKENS}, d = {DIMENSION}, H = {HEADS}, float32",
        problem.ours,
        {
            CLOSED: problem.closed_form,
            LIMIT: problem.limit,
            "torch.func vmap(grad), J J'": problem.torch,
            "JAX vmap(grad), J J'": problem.jax,
        },
        agree=lambda mine, theirs: 0.0 if theirs is None else difference(mine, theirs),
        rounds=rounds,
        goal={CLOSED: goal},
        clock=time.process_time,
    )


def main() -> None:
    """Measure and write `results/multi_head_kernel.json`."""
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["memory"]:
        print(json.dumps(memory_of(sys.argv[2], int(sys.argv[3]))))
        return
    plan = (
        lambda: memory_case(500, {"ours_over_torch_working_bytes": 1 / 3}),
        lambda: memory_case(2048, {"ours_working_bytes": 512 * MEBIBYTE}),
        lambda: time_case(500, 5, 1.5),
        lambda: time_case(2048, 1, 1.5),
    )
    cases: list[dict[str, Any]] = []
    for measure in plan:
        cases.append(measure())
        # Case by case: a run that is cut short keeps what it measured.
        write_results("multi_head_kernel", cases)


if __name__ == "__main__":
    main()
