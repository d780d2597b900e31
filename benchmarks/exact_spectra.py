"""All Hessian eigenvalues of 1000 small attention models, beside one Lanczos run per model.

H = 2, T = 5, d = 5, so 100 parameters; 100 samples, float64. Peers do a few models and are
charged for all: hessian-eigenthings Lanczos to the full dimension with reorthogonalisation, the
scipy Lanczos on curvlinops' operator (10 eigenvalues only), and, as the strongest use of PyTorch
though no Lanczos, whole Hessians by curvlinops, by torch.func and by the closed form of attlas
written in PyTorch with an axis of models (algebra that anyone may copy), each with LAPACK. LAPACK
alone, on matrices that are there, is what no program of whole spectra can leave out. `difference`
is the largest error of an eigenvalue over the largest |eigenvalue|. Times are processor time.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from importlib import import_module  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from scipy.sparse.linalg import eigsh  # noqa: E402

from attlas.losses.empirical_risk import empirical_risk  # noqa: E402
from attlas.measures.curvature.exact_spectrum import hessian_spectra  # noqa: E402
from benchmarks.multi_head_peers import (  # noqa: E402
    TorchMultiHead,
    parameters,
    peer_versions,
    tokens,
    torch_loss,
    torch_outputs,
)
from benchmarks.torch_closed_forms import risk_hessians  # noqa: E402
from liu2021analyzing.library.measures.attention_hessian import attention_risk_hessian  # noqa: E402

MODELS, SAMPLES, SHAPE, SCALE = 1000, 100, (2, 5, 5), 1.0
LARGEST = 10


class Problem:
    """The models and samples for both sides."""

    def __init__(self, models: int):
        """Draw `models` Gaussian models."""
        H, T, d = SHAPE
        self.models = parameters((H, T, d), SCALE, np.float64, count=models)
        self.X, self.y = tokens(SAMPLES, T, d, np.float64)
        self.inputs, self.labels = torch.tensor(self.X), torch.tensor(self.y)
        self.data = jnp.asarray(self.X), jnp.asarray(self.y)

    def nets(self, count: int) -> list[TorchMultiHead]:
        """The first models in PyTorch."""
        pairs = zip(np.asarray(self.models.U), np.asarray(self.models.W), strict=True)
        return [TorchMultiHead(*pair) for pair, _ in zip(pairs, range(count), strict=False)]

    def ours(self, hessian: Callable | None) -> np.ndarray:
        """All spectra, ascending."""
        found = hessian_spectra(
            empirical_risk, self.models, *self.data, in_axes=(None, None), hessian=hessian
        )
        return np.asarray(found.unwrap())

    def eigenthings(self, count: int) -> np.ndarray:
        """hessian-eigenthings: its Lanczos to the full dimension, every Ritz value."""
        package = import_module("hessian_eigenthings")
        lanczos = import_module("hessian_eigenthings.algorithms.lanczos").lanczos
        found = []
        for net in self.nets(count):
            operator = package.HessianOperator(
                net,
                [(self.inputs, self.labels)],
                lambda net, batch: torch_loss(net(batch[0]), batch[1]),
            )
            size = operator.size
            run = lanczos(operator, k=size, max_iter=size, reorthogonalize=True, which="SA", seed=0)
            found.append(run.eigenvalues.numpy())
        return np.stack(found)

    def operators(self, count: int) -> list:
        """The Hessians as operators of curvlinops, without its check at construction."""
        operator = import_module("curvlinops").HessianLinearOperator
        data = [(self.inputs, self.labels)]
        return [
            operator(net, Mean(), list(net.parameters()), data, check_deterministic=False)
            for net in self.nets(count)
        ]

    def curvlinops_lanczos(self, count: int) -> np.ndarray:
        """The Lanczos of scipy on curvlinops' operator, the largest by magnitude."""
        found = [
            eigsh(operator.to_scipy(), k=LARGEST, return_eigenvectors=False)
            for operator in self.operators(count)
        ]
        return np.stack(found)

    def curvlinops_matrix(self, count: int) -> np.ndarray:
        """All unit vectors at once through curvlinops, then LAPACK."""
        size = sum(p.numel() for p in self.nets(1)[0].parameters())
        unit = torch.eye(size, dtype=torch.float64)
        return np.stack([np.linalg.eigvalsh((op @ unit).numpy()) for op in self.operators(count)])

    def torch_hessians(self, count: int) -> np.ndarray:
        """torch.func.hessian over many models in one vmap, then LAPACK."""
        U, W = (torch.tensor(np.asarray(a[:count])) for a in (self.models.U, self.models.W))
        split, shapes = U[0].numel(), (U.shape[1:], W.shape[1:])

        def risk(vector):
            parts = vector[:split].reshape(shapes[0]), vector[split:].reshape(shapes[1])
            return torch_loss(torch_outputs(*parts, self.inputs), self.labels)

        rows = torch.cat([U.flatten(1), W.flatten(1)], dim=1)
        return np.linalg.eigvalsh(torch.func.vmap(torch.func.hessian(risk))(rows).numpy())

    def torch_closed_form(self, count: int) -> np.ndarray:
        """The closed form in PyTorch, 20 models at once, then LAPACK."""
        U, W = (torch.tensor(np.asarray(a[:count])) for a in (self.models.U, self.models.W))
        found = []
        for start in range(0, count, 20):
            part = slice(start, start + 20)
            matrices = risk_hessians(U[part], W[part], self.inputs, self.labels)
            found.append(np.linalg.eigvalsh(matrices.numpy()))
        return np.concatenate(found)

    def lapack_alone(self, count: int) -> None:
        """Eigenvalues of matrices that are there."""
        U, W = (torch.tensor(np.asarray(a[:1])) for a in (self.models.U, self.models.W))
        matrix = risk_hessians(U, W, self.inputs, self.labels).numpy()
        for _ in range(count):
            np.linalg.eigvalsh(matrix)


class Mean(torch.nn.BCEWithLogitsLoss):
    """The mean logistic loss for labels +-1, as a loss that curvlinops accepts."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Mean of log(1 + exp(-y f))."""
        return torch_loss(input, target)


def difference(mine: np.ndarray, theirs: np.ndarray | None) -> float:
    """Largest error over the largest |eigenvalue|; a few are compared with the largest of ours."""
    if theirs is None:
        return 0.0
    some = mine[: len(theirs)]
    wanted = np.take_along_axis(
        some, np.argsort(np.abs(some), axis=1)[:, -theirs.shape[1] :], axis=1
    )
    apart = np.abs(np.sort(wanted, axis=1) - np.sort(theirs, axis=1))
    return float(np.max(apart / np.abs(some).max(axis=1)[:, None]))


def measure(models: int, form: str, hessian: Callable | None, rounds: int) -> dict:
    """One form of ours against all peers."""
    problem = Problem(models)
    few = {
        "hessian-eigenthings, Lanczos, all": 2,
        "curvlinops + eigsh, 10 largest": 2,
        "curvlinops, matrix + LAPACK": 4,
        "torch.func.hessian, vmap + LAPACK": 20,
        "closed form in PyTorch + LAPACK": 100,
        "LAPACK alone": 100,
    }
    works = (
        problem.eigenthings,
        problem.curvlinops_lanczos,
        problem.curvlinops_matrix,
        problem.torch_hessians,
        problem.torch_closed_form,
        problem.lapack_alone,
    )
    if hessian is None:  # a model without a closed form
        few = dict(list(few.items())[:4])
    case = compare(
        f"spectra of {models} models, 100 parameters, float64, {form}",
        lambda: problem.ours(hessian),
        {
            peer: (lambda work=work, count=count: work(count))
            for (peer, count), work in zip(few.items(), works, strict=False)
        },
        agree=difference,
        rounds=rounds,
        weights={peer: count / models for peer, count in few.items()},
        goal=dict.fromkeys(list(few)[:2], 50.0),
        clock=time.process_time,
    )
    return {**case, "peer_versions": PEERS}


PEERS = peer_versions("curvlinops-for-pytorch", "hessian-eigenthings")


def main() -> None:
    """Measure and write `results/exact_spectra.json`."""
    torch.set_num_threads(1)
    with jax.enable_x64(True):
        cases = [
            measure(MODELS, "closed form", attention_risk_hessian, 3),
            measure(MODELS // 10, "autodiff", None, 1),
        ]
    write_results("exact_spectra", cases)


if __name__ == "__main__":
    main()
