"""The Monte Carlo risk of PAC-Bayes: 1000 drawn networks, beside a PyTorch loop over draws.

A network of one hidden layer reads 200 images of 64 numbers, 4,810 weights, and a Transformer's
size of adder, 132 weights, reads 100 rows of 3 numbers; the loss is the share of errors. The loop
draws all weights from the same Gaussian law, applies the network without gradients and counts
errors, as published code does; a stronger peer draws and multiplies 1000 networks as one batch.
What no program can leave out is timed beside them: as many Gaussian numbers, and the matrix
products alone. Both sides draw their own numbers: `difference` is the distance of the two means in
units of its standard error, and the benchmark fails above 5.
"""

import time

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.bounds.generalisation.gaussian_weights import GaussianWeights  # noqa: E402
from attlas.bounds.generalisation.monte_carlo_losses import monte_carlo_losses  # noqa: E402

DRAWS, SCALE = 1000, 0.1
FEW = 100
"""Networks of the loop, which is charged for all."""
GOAL = 20.0
STANDARD_ERRORS = 5.0


class Problem:
    """One network with data, in the arrays of both sides."""

    def __init__(self, samples: int, inputs: int, hidden: int, classes: int):
        """Gaussian data with labels of the mean network, a fifth of them redrawn."""
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(samples, inputs)).astype(np.float32)
        shapes = ((inputs, hidden), (hidden,), (hidden, classes), (classes,))
        self.mean = [(rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in shapes]
        W, b, V, c = self.mean
        right = np.argmax(np.maximum(self.X @ W + b, 0) @ V + c, axis=1)
        noisy = rng.random(samples) < 0.2
        self.y = np.where(noisy, rng.integers(0, classes, samples), right)
        self.size = sum(w.size for w in self.mean)
        X, y = jnp.asarray(self.X), jnp.asarray(self.y)

        def error(weights: list[jax.Array]) -> jax.Array:
            W, b, V, c = weights
            scores = jax.nn.relu(X @ W + b[None]) @ V + c[None]
            return jnp.mean(jnp.argmax(scores, axis=1) != y)

        self.error = error
        self.law = GaussianWeights([jnp.asarray(w) for w in self.mean], SCALE)

    def ours(self) -> np.ndarray:
        """All losses."""
        return monte_carlo_losses(self.error, self.law, jax.random.key(1), DRAWS)

    def loop(self, count: int) -> np.ndarray:
        """One network after the other."""
        X, y = torch.tensor(self.X), torch.tensor(self.y)
        mean = [torch.tensor(w) for w in self.mean]
        found = []
        with torch.no_grad():
            for _ in range(count):
                W, b, V, c = (w + SCALE * torch.randn_like(w) for w in mean)
                scores = torch.relu(X @ W + b) @ V + c
                found.append((scores.argmax(1) != y).float().mean().item())
        return np.array(found)

    def batch(self) -> np.ndarray:
        """All networks by batched products."""
        X, y = torch.tensor(self.X), torch.tensor(self.y)
        with torch.no_grad():
            W, b, V, c = (
                torch.tensor(w) + SCALE * torch.randn((DRAWS, *w.shape)) for w in self.mean
            )
            scores = torch.relu(X @ W + b[:, None]) @ V + c[:, None]
            return (scores.argmax(2) != y).float().mean(1).numpy()

    def least(self) -> np.ndarray:
        """Gaussian numbers and matrix products, without anything else; of no use as losses."""
        rng, X = np.random.default_rng(0), self.X
        for start in range(0, DRAWS, FEW):
            W, _, V, _ = (
                rng.standard_normal((min(FEW, DRAWS - start), *w.shape), np.float32)
                for w in self.mean
            )
            (X @ W) @ V
        return np.zeros(1)


def apart(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Distance of the means in standard errors."""
    error = np.sqrt(mine.var() / len(mine) + theirs.var() / len(theirs))
    return float(abs(mine.mean() - theirs.mean()) / error)


def main() -> None:
    """Measure and write `results/pac_bayes_draws.json`; stop where the means disagree."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = []
    for sizes in ((100, 3, 12, 7), (200, 64, 64, 10)):
        problem = Problem(*sizes)
        loop, batch = "PyTorch loop over draws", "PyTorch, one batch"
        least = "its random numbers and matrix products alone"
        case = compare(
            f"{DRAWS} draws of {problem.size} weights, {sizes[0]} samples, float32",
            problem.ours,
            {
                loop: lambda problem=problem: problem.loop(FEW),
                batch: problem.batch,
                least: problem.least,
            },
            agree=apart,
            rounds=5,
            weights={loop: FEW / DRAWS},
            goal={loop: GOAL},
            clock=time.process_time,
        )
        del case["peers"][least]["difference"]  # it has no losses to agree with
        cases.append(case)
        write_results("pac_bayes_draws", cases)
        far = {peer: case["peers"][peer].get("difference", 0.0) for peer in (loop, batch)}
        if max(far.values()) > STANDARD_ERRORS:
            raise SystemExit(f"the means disagree beyond {STANDARD_ERRORS} standard errors: {far}")


if __name__ == "__main__":
    main()
