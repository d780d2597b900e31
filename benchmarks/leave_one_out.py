"""Leave-one-out trainings of a multi-head model, n = 100, beside loops over the left-out sample.

Full-batch gradient descent from one start, 100 steps, float32. A peer trains some of the 101
models and is charged for all. `difference` is the largest relative difference of the final
parameters; it must stay below one rounding per step, or the benchmark fails. Times are of the
processor: other work shares the core.
"""

import functools
import statistics
from time import process_time

from benchmarks.interleave import compare, pin_to_one_core, seconds, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.losses.empirical_risk import empirical_risk  # noqa: E402
from attlas.models.attention.multi_head import MultiHead  # noqa: E402
from attlas.training.gradient_descent import gradient_descent  # noqa: E402
from attlas.training.risk_gradient import risk_gradient  # noqa: E402
from benchmarks.multi_head_peers import (  # noqa: E402
    TorchMultiHead,
    parameters,
    tokens,
    torch_loss,
    torch_outputs,
)
from deora2023optimization.library.training.leave_one_out import leave_one_out  # noqa: E402

SAMPLES, STEPS, RATE, SCALE = 100, 100, 0.5, 0.3
TOLERANCE = STEPS * float(np.finfo(np.float32).eps)
"""Descent below the step size 2/L does not amplify: one rounding of the parameters per step."""


def flat(U, W) -> np.ndarray:
    """Parameters of a stack of models as rows."""
    U, W = np.asarray(U), np.asarray(W)
    return np.concatenate([U.reshape(len(U), -1), W.reshape(len(W), -1)], axis=1)


def torch_loop(model, X: np.ndarray, y: np.ndarray, trainings: int) -> np.ndarray:
    """The usual eager loop: sample i is cut out, autograd and SGD over the whole batch."""
    found = []
    for i in range(trainings):
        kept = np.arange(SAMPLES) != i
        inputs, labels = torch.tensor(X[kept]), torch.tensor(y[kept])
        net = TorchMultiHead(model.U, model.W)
        descent = torch.optim.SGD(net.parameters(), lr=RATE)
        for _ in range(STEPS):
            descent.zero_grad()
            # The risk divides by n, not by n - 1.
            (torch_loss(net(inputs), labels) * (len(labels) / SAMPLES)).backward()
            descent.step()
        found.append([net.U.detach().numpy(), net.W.detach().numpy()])
    return flat(*(np.stack(part) for part in zip(*found, strict=True)))


def torch_vmap(model, X: np.ndarray, y: np.ndarray, trainings: int) -> np.ndarray:
    """torch.func over all trainings at once, with 0/1 weights."""
    inputs, labels = torch.tensor(X), torch.tensor(y)
    weights = 1 - torch.eye(SAMPLES)[:trainings]

    def risk(U, W, w):
        return (w * torch.nn.functional.softplus(-labels * torch_outputs(U, W, inputs))).mean()

    slopes = torch.func.vmap(torch.func.grad(risk, argnums=(0, 1)))
    U, W = (torch.tensor(np.asarray(a)).repeat(trainings, 1, 1, 1) for a in (model.U, model.W))
    for _ in range(STEPS):
        along_U, along_W = slopes(U, W, weights)
        U, W = U - RATE * along_U, W - RATE * along_W
    return flat(U, W)


@jax.jit
def scan(model, X, y, weights):
    """Gradient descent with autodiff, one training in one compiled scan."""

    def step(model, _):
        slope = jax.grad(lambda model: empirical_risk(model, X, y, weights=weights))(model)
        return jax.tree.map(lambda a, g: a - RATE * g, model, slope), None

    return jax.lax.scan(step, model, length=STEPS)[0]


def weights_without(i: int) -> np.ndarray:
    """0 for the sample left out, 1 for the others."""
    return (np.arange(SAMPLES) != i).astype(np.float32)


def jax_loop(model, X, y, trainings: int) -> np.ndarray:
    """The compiled scan in a Python loop."""
    found = [scan(model, X, y, weights_without(i)) for i in range(trainings)]
    return flat(*(np.stack([getattr(m, part) for m in found]) for part in ("U", "W")))


def jax_loop_closed_form(model, X, y, trainings: int) -> np.ndarray:
    """Our `gradient_descent` in the same loop: what the closed form alone gives."""
    found = [
        gradient_descent(
            model,
            X,
            y,
            step_size=RATE,
            steps=STEPS,
            record_at=(STEPS,),
            weights=jnp.asarray(weights_without(i)),
        ).params
        for i in range(trainings)
    ]
    return flat(*(np.concatenate([getattr(m, part) for m in found]) for part in ("U", "W")))


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest relative difference of the parameters that a peer trained."""
    apart = np.linalg.norm(mine[: len(theirs)] - theirs, axis=1)
    return float(np.max(apart / np.linalg.norm(theirs, axis=1)))


def measure(H: int, T: int, d: int, goals: dict[str, float], rounds: int) -> dict:
    """One size of model."""
    X, y = tokens(SAMPLES, T, d, np.float32)
    model = parameters((H, T, d), SCALE, np.float32)
    data = jnp.asarray(X), jnp.asarray(y)

    def ours() -> np.ndarray:
        run = leave_one_out(model, *data, step_size=RATE, steps=STEPS, record_at=(STEPS,))
        jax.block_until_ready(run.distance)
        return flat(run.without.params.U[:, 0], run.without.params.W[:, 0])

    few = {"PyTorch loop": 2, "JAX loop": 10, "JAX loop, our gradient": 10, "torch.func vmap": 5}
    jax_loop(model, *data, 1)
    jax_loop_closed_form(model, *data, 1)
    torch_loop(model, X, y, 1)
    case = compare(
        f"leave one out, n = {SAMPLES}, {STEPS} steps, H = {H}, T = {T}, d = {d}, float32",
        ours,
        {
            "PyTorch loop": lambda: torch_loop(model, X, y, few["PyTorch loop"]),
            "JAX loop": lambda: jax_loop(model, *data, few["JAX loop"]),
            "JAX loop, our gradient": lambda: jax_loop_closed_form(model, *data, 10),
            "torch.func vmap": lambda: torch_vmap(model, X, y, few["torch.func vmap"]),
        },
        agree=difference,
        rounds=rounds,
        weights={peer: count / (SAMPLES + 1) for peer, count in few.items()},
        goal=goals,
        clock=process_time,
    )
    for peer, row in case["peers"].items():
        if row.get("difference", 0.0) > TOLERANCE:
            raise AssertionError(f"{peer} ends {row['difference']:.1e} away: over {TOLERANCE:.1e}")
    return {**case, "tolerance": TOLERANCE}


def limit(H: int, T: int, d: int, stack: int) -> dict:
    """Milliseconds a model of one gradient and of its six matrix products alone.

    Where the products alone take as long as the gradient of one model, and are no faster side by
    side, a stack of models cannot beat a loop over them.
    """
    X, y = (jnp.asarray(a) for a in tokens(SAMPLES, T, d, np.float32))
    draws = np.random.default_rng(0)
    U, W, share = (
        jnp.asarray(draws.normal(0, SCALE, shape), jnp.float32)
        for shape in ((stack, H, T, d), (stack, H, d, d), (SAMPLES, T, T * stack * H))
    )

    @jax.jit
    def gradient(U, W, share, X, y):
        def one(U, W):
            return risk_gradient(MultiHead(U, W), X, y, jnp.ones_like(y))[1]

        return jax.vmap(one)(U, W) if stack > 1 else one(U[0], W[0])

    @jax.jit
    def products(U, W, share, X, y):
        flat = X.reshape(-1, d)
        turned = (flat @ W.transpose(2, 0, 1, 3).reshape(d, -1)).reshape(SAMPLES, -1, d)
        logits = jnp.einsum("nse,nqe->nsq", X, turned)
        moved = jnp.einsum("nsq,nse->nqe", share, X).reshape(SAMPLES * T, -1)
        along_U = share.reshape(SAMPLES * T, -1).T @ flat
        return logits, flat @ U.reshape(-1, d).T, along_U, flat.T @ moved

    spent: dict[str, list[float]] = {"gradient": [], "products": []}
    for _ in range(15):
        for name, work in (("gradient", gradient), ("products", products)):
            # Data are arguments: products of constants would be computed by the compiler.
            run = functools.partial(work, U, W, share, X, y)
            jax.block_until_ready(run())
            taken, _ = seconds(lambda r=run: jax.block_until_ready(r()), 0.05, process_time)
            spent[name].append(1e3 * taken / stack)
    case = {
        "case": f"limit of one gradient, H = {H}, T = {T}, d = {d}, {stack} side by side",
        **{f"{name}_milliseconds": statistics.median(times) for name, times in spent.items()},
        "operations": 2 * SAMPLES * T * H * d * (2 * d + 4 * T),
    }
    print(case, flush=True)
    return case


def main() -> None:
    """Measure and write `results/leave_one_out.json`."""
    torch.set_num_threads(1)
    goals = {"PyTorch loop": 4.0, "JAX loop": 1.4}
    cases: list[dict] = []
    for size, wanted in (
        ((4, 10, 10), goals),
        ((1, 5, 5), {}),
        ((8, 10, 20), {"JAX loop, our gradient": 1.3}),
    ):
        cases.append(measure(*size, wanted, 3))
        # Case by case: a run that is cut short keeps what it measured.
        write_results("leave_one_out", cases)
    cases += [limit(8, 10, 20, stack) for stack in (1, 4)]
    write_results("leave_one_out", cases)


if __name__ == "__main__":
    main()
