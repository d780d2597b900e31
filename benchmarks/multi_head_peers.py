"""The multi-head model in PyTorch, as users of the peers write it, and its problems.

The peers of `exact_spectra` and `hessian_extremes` are no dependency of ours. They install beside
our torch by `pip install --no-deps --target peers curvlinops-for-pytorch backpack-for-pytorch
einops einconv linear_operator opt-einsum tqdm pyhessian hessian-eigenthings`, and
`PYTHONPATH=peers` shows them; one that is missing is a failed row.
"""

from importlib.metadata import PackageNotFoundError, version

import jax
import jax.numpy as jnp
import numpy as np
import torch

from attlas.models.attention.multi_head import MultiHead


class TorchMultiHead(torch.nn.Module):
    """Phi(X) = H^(-1/2) sum_h <U_h, softmax(X W_h X') X> on a batch, by batched products."""

    def __init__(self, U: np.ndarray, W: np.ndarray):
        """Copy the parameters of our model (H, T, d) and (H, d, d)."""
        super().__init__()
        self.U = torch.nn.Parameter(torch.tensor(np.asarray(U)))
        self.W = torch.nn.Parameter(torch.tensor(np.asarray(W)))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """One output a sample."""
        return torch_outputs(self.U, self.W, X)


def torch_outputs(U: torch.Tensor, W: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Phi of one sample (T, d) or of many (n, T, d)."""
    tokens = X.unsqueeze(-3)
    attention = torch.softmax(tokens @ W @ tokens.mT, dim=-1)
    return (U * (attention @ tokens)).sum((-3, -2, -1)) / W.shape[0] ** 0.5


def torch_loss(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Mean logistic loss."""
    return torch.nn.functional.softplus(-y * outputs).mean()


def tokens(n: int, T: int, d: int, dtype: type, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian tokens whose first coordinate of the first token tells the label."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, T, d)) / np.sqrt(d)
    X[:, 0, 0] += y
    return X.astype(dtype), y.astype(dtype)


def parameters(
    shape: tuple[int, int, int], scale: float, dtype: type, seed: int = 1, count: int | None = None
) -> MultiHead:
    """Gaussian parameters of H heads, T tokens, dimension d; `count` models along an axis."""
    H, T, d = shape
    rng = np.random.default_rng(seed)
    lead = () if count is None else (count,)
    U, W = rng.normal(size=(*lead, H, T, d)), rng.normal(size=(*lead, H, d, d))

    def model(U: np.ndarray, W: np.ndarray) -> MultiHead:
        return MultiHead(jnp.asarray(U, dtype), jnp.asarray(W, dtype))

    return (model if count is None else jax.vmap(model))(scale * U, scale * W)


def peer_versions(*packages: str) -> dict[str, str | None]:
    """Installed versions of peers that the environment of all benchmarks does not list."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
