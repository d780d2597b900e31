"""The three largest Hessian eigenvalues where they crowd, beside the peers' defaults.

A multi-head model with P = 1600 parameters (H = 8, T = d = 10, 100 samples, float64), small enough
that the whole spectrum tells the truth. At zero weights the heads are alike: eigenvalues come in
H - 1 exact copies and with both signs; small weights make them clusters; the third problem is the
same model after training. A row states the
time ratio, as `difference` the largest error of the three values over the largest |eigenvalue|, and
whether the method itself vouches for them. Peers run with their documented defaults; the errors of
those that mean the largest by magnitude are errors against these.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

from collections.abc import Callable  # noqa: E402
from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from scipy.sparse.linalg import LinearOperator, eigsh  # noqa: E402

from attlas.losses.empirical_risk import empirical_risk  # noqa: E402
from attlas.measures.curvature.exact_spectrum import hessian_matrix  # noqa: E402
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes  # noqa: E402
from attlas.models.attention.multi_head import MultiHead  # noqa: E402
from attlas.training.gradient_descent import gradient_descent  # noqa: E402
from benchmarks.multi_head_peers import (  # noqa: E402
    TorchMultiHead,
    parameters,
    peer_versions,
    tokens,
    torch_loss,
)

COUNT, SAMPLES, SHAPE = 3, 100, (8, 10, 10)
PEERS = peer_versions("pyhessian", "hessian-eigenthings", "curvlinops-for-pytorch")


class Problem:
    """One model and its samples for both sides, with the whole spectrum."""

    def __init__(self, model: MultiHead, X: np.ndarray, y: np.ndarray):
        """Compute the truth by the full Hessian."""
        self.model, self.data = model, (jnp.asarray(X), jnp.asarray(y))
        self.inputs, self.labels = torch.tensor(X), torch.tensor(y)
        matrix = np.asarray(hessian_matrix(empirical_risk, model, *self.data))
        self.spectrum = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        self.largest = self.spectrum[::-1][:COUNT]
        order = np.argsort(np.abs(self.spectrum))[::-1][:COUNT]
        self.magnitude = self.spectrum[order]
        self.scale = float(np.abs(self.magnitude[0]))
        self.vouched: dict[str, Any] = {}
        self.values: dict[str, list[float]] = {}

    def net(self) -> TorchMultiHead:
        """The model in PyTorch."""
        return TorchMultiHead(np.asarray(self.model.U), np.asarray(self.model.W))

    def ours(self):
        """Three eigenvalues at each end, with enclosures."""
        found = hessian_extremes(empirical_risk, self.model, *self.data, count=COUNT)
        self.solution = found
        return np.asarray(found.value.largest)

    def pyhessian(self) -> np.ndarray:
        """Power iteration, 100 iterations or a change below 1e-3: no flag of convergence."""
        torch.manual_seed(0)
        hessian = import_module("pyhessian.hessian").hessian
        net = self.net()
        found = hessian(net, torch_loss, data=(self.inputs, self.labels), cuda=False)
        # Its start vectors take the default type.
        torch.set_default_dtype(torch.float64)
        try:
            values = found.eigenvalues(top_n=COUNT)[0]
        finally:
            torch.set_default_dtype(torch.float32)
            net.zero_grad(set_to_none=True)
        self.vouched["PyHessian"] = None
        return np.array(values)

    def eigenthings(self, name: str) -> np.ndarray:
        """Both algorithms of hessian-eigenthings, flags and all."""
        package = import_module("hessian_eigenthings")
        algorithms = import_module("hessian_eigenthings.algorithms")
        operator = package.HessianOperator(
            self.net(),
            [(self.inputs, self.labels)],
            lambda net, batch: torch_loss(net(batch[0]), batch[1]),
        )
        run = getattr(algorithms, name)(operator, k=COUNT, seed=0)
        self.vouched[f"hessian-eigenthings, {name}"] = run.converged.tolist()
        return run.eigenvalues.numpy()

    def scipy(self, **settings: Any) -> np.ndarray:
        """The Lanczos of scipy with PyTorch products by double backward over one retained graph."""
        net = self.net()
        weights = list(net.parameters())
        slope = torch.autograd.grad(
            torch_loss(net(self.inputs), self.labels), weights, create_graph=True
        )
        flat = torch.cat([g.flatten() for g in slope])

        def product(vector: np.ndarray) -> np.ndarray:
            pull = torch.tensor(vector.ravel())
            found = torch.autograd.grad(flat, weights, pull, retain_graph=True)
            return torch.cat([part.flatten() for part in found]).numpy()

        size = flat.numel()
        operator: Any = LinearOperator
        start = np.random.default_rng(0).normal(size=size)
        found: Any = eigsh(
            operator((size, size), matvec=product, dtype=np.float64),
            k=COUNT,
            v0=start,
            return_eigenvectors=False,
            **settings,
        )
        return found

    def error(self, values: np.ndarray, truth: np.ndarray) -> float:
        """Largest error over the largest |eigenvalue|, rank by rank."""
        return float(np.max(np.abs(np.sort(values) - np.sort(truth)))) / self.scale

    def peers(self) -> dict[str, tuple[Callable[[], np.ndarray], np.ndarray]]:
        """Each peer with the three eigenvalues that it means."""
        return {
            "PyHessian": (self.pyhessian, self.magnitude),
            "hessian-eigenthings, deflated_power_iteration": (
                lambda: self.eigenthings("deflated_power_iteration"),
                self.magnitude,
            ),
            "hessian-eigenthings, lanczos": (lambda: self.eigenthings("lanczos"), self.magnitude),
            "eigsh, largest": (lambda: self.scipy(which="LA"), self.largest),
            "eigsh, largest, tol 1e-3": (lambda: self.scipy(which="LA", tol=1e-3), self.largest),
        }


def measure(name: str, problem: Problem, rounds: int) -> dict:
    """Time ratios, and the errors of all against the whole spectrum."""
    peers = problem.peers()

    def run(peer: str) -> float:
        work, meant = peers[peer]
        values = work()
        problem.values[peer] = values.tolist()
        return problem.error(values, meant)

    case = compare(
        name,
        problem.ours,
        {peer: (lambda peer=peer: run(peer)) for peer in peers},
        agree=lambda _, error: error,
        rounds=rounds,
    )
    for peer, values in problem.values.items():
        vouched = problem.vouched.get(peer, "tolerance met, or an exception")
        case["peers"][peer].update(values=values, vouched=vouched)
    found = problem.solution
    low, high = np.asarray(found.certificate["enclosure"][1]).T
    ours = {
        "values": np.asarray(found.value.largest).tolist(),
        "error": problem.error(np.asarray(found.value.largest), problem.largest),
        "residual": np.asarray(found.certificate["residual"][1]).tolist(),
        "enclosure_width": ((high - low) / problem.scale).tolist(),
        "enclosure_holds": bool(np.all((low <= problem.largest) & (problem.largest <= high))),
        "converged": bool(found.converged),
        "stats": dict(found.stats),
    }
    truth = {"largest": problem.spectrum[::-1][:12], "magnitude": problem.magnitude}
    truth = {kind: values.tolist() for kind, values in truth.items()}
    print(ours, truth, problem.vouched, flush=True)
    return {**case, "ours": ours, "truth": truth, "peer_versions": PEERS}


def main() -> None:
    """Measure and write `results/hessian_extremes.json`."""
    torch.set_num_threads(1)
    with jax.enable_x64(True):
        X, y = tokens(SAMPLES, *SHAPE[1:], np.float64)
        start = parameters(SHAPE, 0.01, np.float64)
        path = gradient_descent(
            start, jnp.asarray(X), jnp.asarray(y), step_size=1.0, steps=300, record_at=(300,)
        )
        zero = jax.tree.map(jnp.zeros_like, start)
        cases = [
            measure(f"top {COUNT} of 1600 eigenvalues, {where}", Problem(model, X, y), 3)
            for where, model in (
                ("zero weights", zero),
                ("small weights", start),
                ("after 300 steps", path.at(-1)),
            )
        ]
    write_results("hessian_extremes", cases)


if __name__ == "__main__":
    main()
