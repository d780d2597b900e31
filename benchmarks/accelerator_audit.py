"""The audit and attention SVMs on an accelerator, beside PyTorch on the same one.

The removal of all heads of two models stands beside a loop over `transformers` whose output
matrices lose one head at a time; `removal_products` counts what either has to multiply, and
`teraflops` is that count over the seconds, beside the rate of a large product in float32. A
thousand attention SVMs at p = 2 are solved on the processor by attlas, whose solvers are NumPy and
LAPACK, and beside it by the same algebra in PyTorch on the device, all problems at once: projected
gradient steps guess the supports, pivots end at the solutions. `difference` of SVMs is that of the
optimal norms. Times are of the wall, compilation left out; results go back to the processor.

`JAX_PLATFORMS=cuda python -m benchmarks accelerator_audit`; without an accelerator nothing is
measured, and a test runs the same cases on the processor at tiny sizes.
"""

import os
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import torch

from attlas.solvers.attention_svm import attention_svm_batch
from benchmarks.accelerator import precisions, relative
from benchmarks.attention_problems import feasible
from benchmarks.audit_speed import removal_shape, removal_sides
from benchmarks.interleave import compare, write_results
from benchmarks.removal_products import removal_operations

STEPS, PIVOTS = 20, 12
PROBLEM = (6, 8, 10)
"""Samples, tokens and dimension of an SVM: 42 constraints in 100 variables."""


@torch.no_grad()
def least_norms(X: np.ndarray, z: np.ndarray, tokens: np.ndarray, device: str) -> np.ndarray:
    """Optimal 2-norms of many attention SVMs, float64, all at once.

    Args:
        X: tokens, [b, n, T, d].
        z: queries, [b, n, d].
        tokens: selected tokens, [b, n].
        device: of PyTorch.

    Returns:
        Norms, [b]; NaN where pivots did not end.
    """
    b, _, T, d = X.shape
    points, queries = (torch.tensor(a, device=device) for a in (X, z))
    best = torch.tensor(tokens, device=device)[..., None]
    others = torch.arange(T - 1, device=device)
    index = (others + (others >= best))[..., None].expand(-1, -1, -1, d)
    D = points.gather(2, best[..., None].expand(-1, -1, -1, d)) - points.gather(2, index)
    flat, rows = D.reshape(b, -1, d), queries.repeat_interleave(T - 1, dim=1)
    gram = (flat @ flat.mT) * (rows @ rows.mT)
    lengths = gram.diagonal(dim1=1, dim2=2).sqrt()
    gram, aim = gram / (lengths[:, :, None] * lengths[:, None, :]), 1 / lengths

    def product(y: torch.Tensor) -> torch.Tensor:
        return (gram @ y[..., None])[..., 0]

    y = aim * ((aim * aim).sum(1, keepdim=True) / (aim * product(aim)).sum(1, keepdim=True))
    slope = product(y) - aim
    step = (slope * slope).sum(1, keepdim=True) / (slope * product(slope)).sum(1, keepdim=True)
    for count in range(STEPS):
        ahead = (y - step * slope).clamp(min=0)
        after = product(ahead) - aim
        move, change = ahead - y, after - slope
        bend = (move * change).sum(1, keepdim=True)
        squares = change if count % 2 == 0 else move
        size = (squares * squares).sum(1, keepdim=True)
        ratio = bend / size if count % 2 == 0 else size / bend
        step = torch.where(bend > 0, ratio, step)
        y, slope = ahead, after
    free = y - step * slope > 0
    for _ in range(PIVOTS):
        # Rows outside of the support have the system y = 0.
        system = torch.where(free[:, :, None] & free[:, None, :], gram, 0.0)
        system.diagonal(dim1=1, dim2=2).masked_fill_(~free, 1.0)
        y = torch.linalg.solve(system, torch.where(free, aim, 0.0))
        wrong = torch.where(free, y < 0, product(y) - aim < -1e-12)
        if not bool(wrong.any()):
            break
        free = free ^ wrong
    norms = (y * aim).sum(1).sqrt()
    return torch.where(wrong.any(1), torch.nan, norms).cpu().numpy()


def svm_case(count: int, device: str, rounds: int) -> dict[str, Any]:
    """Many small SVMs at p = 2."""
    problems = [feasible(seed, *PROBLEM) for seed in range(count)]
    X, z, tokens = (np.stack([part[k] for part in problems]) for k in range(3))

    def ours() -> np.ndarray:
        return attention_svm_batch(X, z, tokens, 2.0).certificate["norm_upper"]

    return compare(
        f"{count} SVMs, 42 constraints, 100 variables, p = 2, ours on the processor",
        ours,
        {"the same algebra in PyTorch, all at once": lambda: least_norms(X, z, tokens, device)},
        agree=lambda mine, theirs: float(np.max(np.abs(mine / theirs - 1))),
        rounds=rounds,
        goal={"the same algebra in PyTorch, all at once": 1.0},
    )


def removal_case(kind: str, length: int, device: str, rounds: int, peak: float) -> dict[str, Any]:
    """All heads removed, with the rate at which either side multiplies."""
    ours, loop, heads = removal_sides(kind, length, device)
    name = "loop over transformers, zeroed heads"
    case = compare(
        f"removal of all heads, {kind}, 8 x {length} tokens, float32",
        ours,
        {name: loop},
        agree=relative,
        rounds=rounds,
        weights={name: 1 / 3},
        goal={name: 5.0},
    )
    mine, theirs = removal_operations(removal_shape(kind, length), 3 * heads)
    return {
        **case,
        "teraflops": mine / case["seconds"] / 1e12,
        "loop_teraflops": theirs / case["peers"][name]["seconds"] / 1e12,
        "share_of_a_large_product": mine / case["seconds"] / 1e12 / peak,
    }


def cases(device: str, count: int, length: int, size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Every case, one after the other.

    Args:
        device: of PyTorch; JAX has the one that it was started with.
        count: SVMs.
        length: tokens of a sequence of the audit.
        size: of the product whose rate is the limit.
        rounds: of each comparison.

    Yields:
        Cases of the file of results.
    """
    limit = precisions(size)
    yield limit
    with jax.enable_x64(True):
        yield svm_case(count, device, rounds)
    peak = limit["precisions"]["highest"]["teraflops"]
    for kind in ("gpt2", "stories260k's shape"):
        yield removal_case(kind, length, device, rounds, peak)


def main() -> None:
    """Measure and write `results/accelerator_audit.json`."""
    if jax.default_backend() == "cpu":
        print("no accelerator here (JAX_PLATFORMS=cuda would choose one): nothing is measured")
        return
    measured: list[dict[str, Any]] = []
    with jax.default_matmul_precision("highest"):
        for case in cases("cuda", 1000, 128, 4096, 3):
            measured.append(case)
            # Case by case: a run that is cut short keeps what it measured.
            write_results("accelerator_audit", measured, threads=os.cpu_count() or 1)


if __name__ == "__main__":
    main()
