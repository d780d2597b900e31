"""Strong peers of the selection ensemble: PyTorch in closed form on the batch, and a C kernel."""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

KERNEL = Path(__file__).with_name("selection_kernel.c")
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fopenmp-simd", "-shared", "-fPIC"]


@cache
def _library(shape: tuple[int, int, int], p: float) -> ctypes.CDLL:
    """The kernel compiled for one shape and exponent; the machine's own gcc."""
    n, tokens, d = shape
    sizes = [f"-DN={n}", f"-DT={tokens}", f"-DD={d}", f"-DP4={round(4 * p)}"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.so"
        command = ["gcc", *FLAGS, *sizes, str(KERNEL), "-o", str(out), "-lmvec", "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(out))


def c_kernel(
    data, starts, p: float, rate: float, steps: int, early: int
) -> Callable[[], np.ndarray]:
    """A function that trains all models and gives W at the step of comparison."""
    X, y, z, v = (np.asarray(a, float) for a in (data.X, data.y, data.z, data.v))
    models, n, tokens, d = X.shape
    library = _library((n, tokens, d), p)
    columns = np.ascontiguousarray(X.transpose(0, 1, 3, 2))
    arrays = [np.ascontiguousarray(a) for a in (y, z, v)]

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    def run() -> np.ndarray:
        W, found = np.array(starts, float, order="C"), np.empty((models, d, d))
        library.train(
            pointer(columns),
            *(pointer(a) for a in arrays),
            pointer(W),
            pointer(found),
            models,
            steps,
            early,
            ctypes.c_double(rate),
        )
        return found

    return run


def torch_batch(
    data,
    starts,
    p: float,
    rate: float,
    steps: int,
    early: int,
    *,
    compiled: bool = False,
    device: str = "cpu",
    graph: bool = False,
) -> Callable[[], np.ndarray]:
    """The gradient of Lemma 17 in closed form for all models at once, without autograd.

    With `graph` a step on a CUDA device is recorded once and replayed, without Python's launches.
    """
    arrays = (data.X, data.y, data.z, data.v, starts)
    X, y, z, v, W0 = (torch.tensor(np.asarray(a), device=device) for a in arrays)
    q = p / (p - 1)
    scores = y[:, :, None] * torch.einsum("bntd,bd->bnt", X, v)
    rows, columns = z.contiguous(), z.mT.contiguous()
    flat = X.reshape(-1, *X.shape[2:])
    models, n, tokens, d = X.shape

    def primal(dual: torch.Tensor) -> torch.Tensor:
        return dual if p == 2 else dual.sign() * dual.abs().pow(1 / (p - 1))

    def step(dual: torch.Tensor) -> torch.Tensor:
        # W is kept transposed, as ours is: all products are batched and contiguous.
        images = rows @ primal(dual)
        h = torch.bmm(flat, images.reshape(-1, d, 1)).reshape(models, n, tokens)
        weights = torch.softmax(h, dim=2)
        mean = (weights * scores).sum(2, keepdim=True)
        slope = -torch.sigmoid(-mean) / n
        coefficient = slope * weights * (scores - mean)
        features = torch.bmm(coefficient.reshape(-1, 1, tokens), flat).reshape(models, n, d)
        G = columns @ features
        size = (G * G).sum((1, 2), keepdim=True).sqrt() if p == 2 else (
            G.abs().pow(q).sum((1, 2), keepdim=True).pow(1 / q)
        )  # fmt: skip
        return dual - rate * G / size

    move = torch.compile(step) if compiled else step
    if graph:
        move = _recorded(step, W0.mT.contiguous())

    @torch.no_grad()
    def run() -> np.ndarray:
        start = W0.mT.contiguous()
        dual = start if p == 2 else start.sign() * start.abs().pow(p - 1)
        found = dual
        for k in range(steps):
            if k == early:
                found = dual.clone()
            dual = move(dual)
        return primal(found).mT.cpu().numpy()

    return run


@torch.no_grad()
def _recorded(
    step: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The step as a CUDA graph that moves one tensor in place."""
    held = like.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(held)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held.copy_(step(held))

    # The graph reads tensors of the step: whoever holds one must hold the other.
    def move(dual: torch.Tensor, _step: object = step) -> torch.Tensor:
        if dual is not held:
            held.copy_(dual)
        graph.replay()
        return held

    return move
