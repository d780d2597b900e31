"""A million steps of kernel regression from one eigendecomposition, beside that alone and a loop.

The kernel is the limit of infinite width on 1000 unit samples, d = 32, float64, eta = 1 over the
largest eigenvalue; predictions on 200 further samples after 200 and after 10^6 steps. The loop of
steps in NumPy makes 200 of them and its time for 10^6 is extrapolated; the powers of the step by
repeated squaring are the strongest way without a decomposition, and check the result at 10^6.
`difference` is relative to the largest prediction, or eigenvalue.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from gu2024exploring.library.kernels.regression_flow import regression_flow  # noqa: E402
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit  # noqa: E402

SAMPLES, FURTHER, DIMENSION, SIGMA = 1000, 200, 32, 1.0
FEW, STEPS = 200, 10**6


class Problem:
    """Kernels, targets and the step size."""

    def __init__(self, outputs: int):
        """Unit samples and targets with noise, so that slow directions matter."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(SAMPLES + FURTHER, DIMENSION))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        train, test = jnp.asarray(X[:SAMPLES]), jnp.asarray(X[SAMPLES:])
        self.kernel = np.asarray(softmax_ntk_limit(train, train, SIGMA))
        self.cross = np.asarray(softmax_ntk_limit(test, train, SIGMA))
        teacher = rng.normal(size=(DIMENSION, outputs))
        self.targets = np.tanh(X[:SAMPLES] @ teacher) + 0.1 * rng.normal(size=(SAMPLES, outputs))
        self.eta = float(1 / np.linalg.eigvalsh(self.kernel)[-1])

    def ours(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, and the predictions after few steps and after all."""
        flow = regression_flow(self.kernel, self.targets)
        times = np.array([FEW, STEPS], float)
        return flow.eigenvalues, flow.test(self.cross, times, self.eta)

    def decomposition(self) -> np.ndarray:
        """`numpy.linalg.eigh` alone."""
        return np.linalg.eigh(self.kernel).eigenvalues

    def loop(self) -> np.ndarray:
        """The few steps one by one on the coefficients, then the predictions."""
        theta = np.zeros_like(self.targets)
        for _ in range(FEW):
            theta += self.eta * (self.targets - self.kernel @ theta)
        return (self.cross @ theta)[None]

    def squaring(self) -> np.ndarray:
        """Theta after all steps: theta -> A theta + b composed with itself 20 times."""
        A, b = np.eye(SAMPLES) - self.eta * self.kernel, self.eta * self.targets
        theta, left = np.zeros_like(b), STEPS
        while left:
            if left % 2:
                theta = A @ theta + b
            left //= 2
            if left:
                A, b = A @ A, A @ b + b
        return (self.cross @ theta)[None, None]


def difference(mine: tuple[np.ndarray, np.ndarray], theirs: np.ndarray) -> float:
    """Eigenvalues are a vector, few steps (1, n2, k), all steps (1, 1, n2, k)."""
    wanted = (mine[0], None, mine[1][:1], mine[1][None, 1:])[theirs.ndim - 1]
    return float(np.max(np.abs(wanted - theirs)) / np.max(np.abs(theirs)))


def measure(outputs: int) -> dict:
    """One number of outputs."""
    problem = Problem(outputs)
    alone, loop = "numpy.linalg.eigh alone", f"NumPy loop, extrapolated from {FEW} steps"
    case = compare(
        f"10^6 steps, n = {SAMPLES}, {outputs} outputs, float64",
        problem.ours,
        {
            alone: problem.decomposition,
            loop: problem.loop,
            "repeated squaring": problem.squaring,
        },
        agree=difference,
        rounds=5,
        weights={loop: FEW / STEPS},
        goal={alone: 1.0},
    )
    values = problem.ours()[0]
    return {**case, "condition_number": float(values[-1] / values[0])}


def main() -> None:
    """Measure and write `results/kernel_flow.json`."""
    cases = []
    with jax.enable_x64(True):
        for outputs in (1, DIMENSION):
            cases.append(measure(outputs))
            write_results("kernel_flow", cases)


if __name__ == "__main__":
    main()
