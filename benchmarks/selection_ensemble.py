"""100 token-selection problems by normalised mirror descent, beside PyTorch and a C kernel.

Plain PyTorch trains one model at a time with autograd, as the released code of the paper does;
its strongest use is the gradient in closed form for all models at once, eager and compiled. The C
kernel is written for this one shape: it is the roofline of one core. The score is models per
second, of processor time. 10,000 models are then run in chunks, with their peak memory.
"""

import time

from benchmarks.interleave import compare, peak_memory, pin_to_one_core, seconds, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.data.token_selection import make_token_selection  # noqa: E402
from benchmarks.selection_peers import c_kernel, torch_batch  # noqa: E402
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble  # noqa: E402

STEPS, RATE, MODELS = 2000, 0.1, 100
EARLY = 100
"""Step at which results are compared: later the peer's gradient, through autograd, is rounding
noise on saturated samples, and normalised steps amplify it."""


def problems(count: int):
    """Released settings: n = 6, T = 8, d = 10, W(0) Gaussian."""
    data_key, start_key = jax.random.split(jax.random.key(0))
    data = jax.vmap(make_token_selection)(jax.random.split(data_key, count))
    return data, jax.random.normal(start_key, (count, 10, 10))


def torch_loop(data, start, p: float) -> np.ndarray:
    """One model by autograd and the released update; W at the step of comparison."""
    X, y, z, v = (torch.tensor(np.asarray(a)) for a in (data.X, data.y, data.z, data.v))
    W = torch.tensor(np.asarray(start), requires_grad=True)
    q = p / (p - 1)
    early = W
    for k in range(STEPS):
        if k == EARLY:
            early = W.detach().clone()
        weights = torch.softmax(torch.einsum("ntd,de,ne->nt", X, W, z), dim=1)
        margin = y * torch.einsum("nt,ntd,d->n", weights, X, v)
        loss = torch.nn.functional.softplus(-margin).mean()
        (slope,) = torch.autograd.grad(loss, W)
        with torch.no_grad():
            slope = slope / slope.abs().pow(q).sum().pow(1 / q)
            dual = W.sign() * W.abs().pow(p - 1) - RATE * slope
            W.copy_(dual.sign() * dual.abs().pow(1 / (p - 1)))
    return early.numpy()


def angle(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Relative difference of the models that both trained at step 100."""
    theirs = theirs.reshape(-1, *mine.shape[1:])
    mine = mine[: len(theirs)]
    return float(np.linalg.norm(mine - theirs) / np.linalg.norm(theirs))


def main() -> None:
    """Measure and write `results/selection_ensemble.json`."""
    torch.set_num_threads(1)
    cases = []
    with jax.enable_x64(True):
        data, starts = problems(MODELS)
        first = jax.tree.map(lambda a: a[0], data)
        for p, goal in ((2.0, 250.0), (1.75, 120.0), (3.0, 1.0)):

            def ours(p=p):
                run = train_selection_ensemble(
                    data, starts, p=p, learning_rate=RATE, steps=STEPS, record_at=(EARLY, STEPS)
                )
                return np.asarray(jax.block_until_ready(run.W))[:, 0]

            setting = (data, starts, p, RATE, STEPS, EARLY)
            cases.append(
                compare(
                    f"100 models, 2000 steps, p = {p:g}, float64",
                    ours,
                    {
                        "PyTorch loop": lambda p=p: torch_loop(first, starts[0], p),
                        "PyTorch batch, closed form": torch_batch(*setting),
                        "PyTorch batch, compiled": torch_batch(*setting, compiled=True),
                        "C kernel": c_kernel(*setting),
                    },
                    agree=angle,
                    clock=time.process_time,
                    rounds=5,
                    weights={"PyTorch loop": 1 / MODELS},
                    goal={
                        "PyTorch loop": goal,
                        "PyTorch batch, closed form": 6.0,
                        "C kernel": 1 / 1.3,
                    },
                )
            )
        cases.append(many())
    write_results("selection_ensemble", cases)


def many(count: int = 10_000, whole: int = 500) -> dict:
    """10,000 models in chunks: memory, and agreement with the first 500 in one piece."""
    data, starts = problems(count)

    def train(part, W, chunk=None):
        return train_selection_ensemble(
            part,
            W,
            p=1.75,
            learning_rate=RATE,
            steps=STEPS,
            record_at=(EARLY, STEPS),
            chunk=chunk,
        )

    taken, chunked = seconds(lambda: jax.block_until_ready(train(data, starts)))
    peak = peak_memory()
    piece = train(jax.tree.map(lambda a: a[:whole], data), starts[:whole], whole)
    apart = jnp.linalg.norm(chunked.W[:whole] - piece.W, axis=(2, 3))
    apart = apart / jnp.linalg.norm(piece.W, axis=(2, 3))
    selected = [jnp.argmax(path.attention[:whole, -1], axis=-1) for path in (chunked, piece)]
    case = {
        "case": "10,000 models, 2000 steps, p = 1.75, float64, against 500 unchunked",
        "seconds": taken,
        "models_per_second": count / taken,
        "peak_memory_bytes": peak,
        "goal_bytes": 2 * 10**9,
        "difference_at_step_100": float(jnp.max(apart[:, 0])),
        "difference_at_the_end": float(jnp.max(apart[:, 1])),
        "same_tokens_selected": bool(jnp.all(selected[0] == selected[1])),
    }
    print(case, flush=True)
    return case


if __name__ == "__main__":
    main()
