"""200 softmax networks trained at once, beside PyTorch: one after the other, and as one batch.

n = 20, d = 5, m = 256, one output, 300 steps of full-batch gradient descent from the symmetric
initialisation, float32, with the loss recorded at every step on both sides. The usual loop calls
autograd; the stronger peers use the closed form of the gradient, one network at a time or all by
batched products. Loops train some networks and are charged for all. `difference` is the largest
relative distance between the weights at the end; the benchmark fails above the tolerance.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.kernels.softmax_network_ntk import softmax_ntk  # noqa: E402
from attlas.models.networks.softmax_network import SoftmaxNetwork  # noqa: E402
from gu2024exploring.library.training.softmax_regression import train_softmax_networks  # noqa: E402

NETWORKS, SAMPLES, DIMENSION, WIDTH, STEPS = 200, 20, 5, 256, 300
HOW = ("loop, autograd", "loop, closed form", "batch, closed form")
TOLERANCE = STEPS * float(np.finfo(np.float32).eps)
"""Descent below the step size 2/L does not amplify: one rounding of the weights per step."""


class Problem:
    """The starts, the data and one step size in the arrays of both sides."""

    def __init__(self):
        """Draw the symmetric initialisation of every network; the data are shared."""
        rng = np.random.default_rng(0)
        half = rng.normal(size=(NETWORKS, DIMENSION, WIDTH // 2)).astype(np.float32)
        signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=(NETWORKS, 1, WIDTH // 2))
        self.W = np.repeat(half, 2, axis=2)
        self.a = np.stack((signs, -signs), axis=3).reshape(NETWORKS, 1, WIDTH)
        X = rng.normal(size=(SAMPLES, DIMENSION))
        self.X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        self.Y = rng.choice(np.array([-1.0, 1.0], np.float32), size=(SAMPLES, 1))
        kernels = [
            softmax_ntk(SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a)), self.X)
            for W, a in zip(self.W, self.a, strict=True)
        ]
        largest = max(np.linalg.norm(H, 2) for H in kernels)
        # Half of the largest step that the kernel at the start allows any of the networks.
        self.eta = float(1 / (WIDTH * largest))

    def ours(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights at the end and the losses."""
        networks = SoftmaxNetwork(jnp.asarray(self.W), jnp.asarray(self.a))
        data = jnp.asarray(self.X), jnp.asarray(self.Y)
        every = range(STEPS + 1)
        run = train_softmax_networks(
            networks, *data, step_size=self.eta, steps=STEPS, record_at=every
        )
        return np.asarray(run.last.W), np.asarray(run.loss)

    def autograd(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The usual loop: autograd and SGD."""
        X, y = torch.tensor(self.X), torch.tensor(self.Y[:, 0])
        found, losses = [], []
        for start, head in zip(self.W[:count], self.a[:count, 0], strict=True):
            W, a = torch.tensor(start, requires_grad=True), torch.tensor(head)
            descent = torch.optim.SGD([W], lr=self.eta)
            path = []
            for _ in range(STEPS):
                descent.zero_grad()
                F = WIDTH * (torch.softmax(X @ W, dim=1) @ a)
                loss = ((F - y) ** 2).sum() / 2
                loss.backward()
                path.append(loss.item())
                descent.step()
            found.append(W.detach().numpy())
            losses.append(path)
        return np.stack(found), np.array(losses)

    def closed_form(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The same loop with the gradient of Claim 3.4 written out."""
        X, y = torch.tensor(self.X), torch.tensor(self.Y[:, 0])
        found, losses = [], []
        for start, head in zip(self.W[:count], self.a[:count, 0], strict=True):
            W, a, path = torch.tensor(start), torch.tensor(head), []
            for _ in range(STEPS):
                units = torch.softmax(X @ W, dim=1)
                F = WIDTH * (units @ a)
                u = F - y
                path.append(u @ u)
                pull = torch.outer(u, a) - (u * F / WIDTH)[:, None]
                W.addmm_(X.T, units.mul_(pull), alpha=-self.eta * WIDTH)
            found.append(W.numpy())
            losses.append(torch.stack(path).numpy() / 2)
        return np.stack(found), np.array(losses)

    def batched(self) -> tuple[np.ndarray, np.ndarray]:
        """The closed form of all networks at once by batched products."""
        X, y = torch.tensor(self.X), torch.tensor(self.Y)
        W, a = torch.tensor(self.W), torch.tensor(self.a)
        down, path = X.T.expand(len(W), -1, -1), []
        for _ in range(STEPS):
            units = torch.softmax(X @ W, dim=2)
            F = WIDTH * (units @ a.mT)
            u = F - y
            path.append((u * u).sum((1, 2)))
            pull = u * a - u * F / WIDTH
            W.baddbmm_(down, units.mul_(pull), alpha=-self.eta * WIDTH)
        return W.numpy(), torch.stack(path, dim=1).numpy() / 2


def difference(mine: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> float:
    """Largest relative distance of the weights of a network that the peer trained."""
    W = mine[0][: len(theirs[0])]
    apart = np.linalg.norm((W - theirs[0]).reshape(len(W), -1), axis=1)
    return float(np.max(apart / np.linalg.norm(theirs[0].reshape(len(W), -1), axis=1)))


def main() -> None:
    """Measure and write `results/softmax_ensemble.json`; stop where results disagree."""
    torch.set_num_threads(1)
    problem = Problem()
    autograd, closed, batch = (f"PyTorch {how}" for how in HOW)
    few = {autograd: 4, closed: 10}
    problem.autograd(1)
    case = compare(
        f"{NETWORKS} networks, n = {SAMPLES}, d = {DIMENSION}, m = {WIDTH}, {STEPS} steps, float32",
        problem.ours,
        {
            autograd: lambda: problem.autograd(few[autograd]),
            closed: lambda: problem.closed_form(few[closed]),
            batch: problem.batched,
        },
        agree=difference,
        rounds=5,
        weights={peer: count / NETWORKS for peer, count in few.items()},
    )
    losses = problem.ours()[1]
    reached = float(np.max(losses[:, -1] / losses[:, 0]))
    case |= {"tolerance": TOLERANCE, "largest_share_of_loss_left": reached}
    write_results("softmax_ensemble", [case])
    apart = {peer: row.get("difference", 0.0) for peer, row in case["peers"].items()}
    if max(apart.values()) > TOLERANCE:
        raise SystemExit(f"the sides disagree beyond {TOLERANCE:.1e}: {apart}")


if __name__ == "__main__":
    main()
