r"""The largest Hessian eigenvalue of a captured model, by products of PyTorch's double backward."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas._files.plain_file import printable
from attlas.audit.captured.captured_ablation import CapturedLoss
from attlas.audit.deep_level.rate_decision import Sharpness
from attlas.audit.deep_level.stable_step import require_step, stable_threshold
from attlas.core.errors import UserError, in_short
from attlas.measures.curvature.spectrum_ends import SpectrumEnds, spectrum_ends

_RESIDUAL, _WIDTH = 1e-6, 0.02
"""Largest residual of the eigenvalue, and width of its interval, over the largest of the ends."""
_ASYMMETRY = 1e-7
"""Of products with two random vectors, over the length of an image: far above their rounding."""
_COMPLETE = 600
"""Weights up to which the whole Hessian is formed."""
_FEWEST, _BYTES = 20, 2**33
"""Vectors that must fit in memory, twice each in float64, and the memory for them."""


def trained_parameters(model: nn.Module, name: str) -> list[nn.Parameter]:
    """The weights that training moves: those that require a gradient, shared ones once.

    Raises:
        UserError: if there are none, or too many for the vectors of the eigenvalue.
    """
    weights = [tensor for tensor in model.parameters() if tensor.requires_grad and tensor.numel()]
    if not weights:
        raise UserError(
            f"no weight of {name} requires a gradient, so that no step moves it: call "
            "requires_grad_() on what is trained, or leave the learning rate out"
        )
    if _most_steps(weights) < _FEWEST:
        size = sum(tensor.numel() for tensor in weights)
        raise UserError(
            f"the sharpness in {size:,} weights of {name} needs more than {_BYTES:,} bytes: let "
            "fewer weights require a gradient, or leave the learning rate out"
        )
    return weights


def captured_sharpness(
    loss: CapturedLoss,
    learning_rate: float,
    *,
    optimizer: str = "sgd",
    momentum: float = 0.0,
    max_steps: int = 120,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> Sharpness:
    r"""Largest eigenvalue of the Hessian of the mean loss in all trained weights, with an interval.

    Lanczos with $Hv=\nabla_w(v^\top\nabla_wL(w))$, until the residual $\lVert Hv-\theta
    v\rVert$ of the Ritz value is at most 1e-6, and its interval at most 0.02, of the largest
    absolute Ritz value.

    Args:
        loss: losses of sequences by a model in float64.
        max_steps: largest number of products; fewer where their vectors would not fit in memory.
        progress: called with the number of products done, and of all that may be needed.

    Returns:
        NaN where it did not converge.

    Raises:
        UserError: if the optimiser has no threshold, a number is out of range, the weights are too
            many, or PyTorch has no second derivative of an operation of the model.
    """
    require_step(learning_rate, optimizer, momentum)
    threshold = stable_threshold(optimizer, momentum)
    weights = trained_parameters(loss.model.module, loss.model.name)
    size = sum(tensor.numel() for tensor in weights)
    steps = size if size <= _COMPLETE else min(max_steps, _most_steps(weights))
    done = 0

    def products(rows: Float[np.ndarray, "1 P"]) -> Float[np.ndarray, "1 P"]:
        with second_derivatives(loss.model.name):
            return hessian_product(loss, weights, rows[0])[None]

    _require_symmetry(products, size, loss.model.name)

    def count() -> None:
        nonlocal done
        done += 1
        progress(done, steps)

    ends = spectrum_ends(
        products, 1, size, steps=max(steps, 2), progress=count, suffices=_has_converged
    )
    if not _has_converged(ends):
        unknown = float("nan")
        return Sharpness(unknown, unknown, unknown, unknown, threshold)
    value, low, high = (float(end[0, 1]) for end in (ends.values, ends.low, ends.high))
    return Sharpness(value, low, high, learning_rate * value, threshold)


def mean_gradient(
    loss: CapturedLoss, weights: list[nn.Parameter]
) -> tuple[float, list[Float[Tensor, "..."]]]:
    """The mean loss of the sequences, and its derivatives in the weights."""
    total, slopes = 0.0, [torch.zeros_like(tensor) for tensor in weights]
    for losses in loss.tensors():
        part = losses.sum() / loss.size
        total += part.item()
        for slope, tensor in zip(slopes, _gradients([part], weights), strict=True):
            slope += tensor
    return total, slopes


def hessian_product(
    loss: CapturedLoss, weights: list[nn.Parameter], vector: Float[np.ndarray, " P"]
) -> Float[np.ndarray, " P"]:
    """The Hessian of the mean loss times a vector, batch by batch."""
    pieces = torch.tensor(vector).split([tensor.numel() for tensor in weights])
    rows = [piece.reshape(w.shape).to(w) for piece, w in zip(pieces, weights, strict=True)]
    image = np.zeros(len(vector))
    for losses in loss.tensors():
        slopes = _gradients([losses.sum() / loss.size], weights, create_graph=True)
        moving = [(slope, row) for slope, row in zip(slopes, rows, strict=True) if slope.grad_fn]
        if moving:  # a loss that is linear in all weights has no second derivative
            firsts, factors = (list(column) for column in zip(*moving, strict=True))
            seconds = _gradients(firsts, weights, factors)
            image += torch.cat([tensor.reshape(-1) for tensor in seconds]).double().cpu().numpy()
    return image


@contextmanager
def second_derivatives(name: str) -> Iterator[None]:
    """One line where PyTorch cannot differentiate a model twice.

    Examples:
        >>> with second_derivatives("model"):
        ...     raise RuntimeError("no derivative")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: PyTorch has no second derivatives of the loss of model ...
    """
    try:
        yield
    except RuntimeError as error:
        raise UserError(
            f"PyTorch has no second derivatives of the loss of {name} "
            f"({printable(in_short(error))[:200]}), of which the sharpness is made: leave the "
            "learning rate out, or write that operation with ones that have them"
        ) from error


def _require_symmetry(
    products: Callable[[Float[np.ndarray, "1 P"]], Float[np.ndarray, "1 P"]], size: int, name: str
) -> None:
    """Refuse a model that hides derivatives, of which PyTorch then tells nothing.

    A gradient that is cut, by `detach` or a function that is differentiable once, is no gradient of
    the loss, and its derivatives are not symmetric.
    """
    first, second = np.random.default_rng(0).standard_normal((2, 1, size))
    images = [products(rows) for rows in (first, second)]
    forth, back = float(second[0] @ images[0][0]), float(first[0] @ images[1][0])
    scale = max(float(np.linalg.norm(image)) for image in images)
    if not abs(forth - back) <= _ASYMMETRY * scale:
        raise UserError(
            f"second derivatives of the loss of {name} are not symmetric ({forth:.6g} and "
            f"{back:.6g}): an operation hides a derivative from PyTorch (detach, no_grad or "
            "once_differentiable), so that the sharpness cannot be measured: leave the learning "
            "rate out, or write that operation with ones that have all derivatives"
        )


def _gradients(
    values: list[Tensor],
    weights: list[nn.Parameter],
    factors: list[Tensor] | None = None,
    *,
    create_graph: bool = False,
) -> tuple[Tensor, ...]:
    """Derivatives in the weights; zeros in those that take no part."""
    return torch.autograd.grad(
        values, weights, factors, create_graph=create_graph, materialize_grads=True
    )


def _most_steps(weights: list[nn.Parameter]) -> int:
    """Vectors that fit in memory beside their images."""
    return _BYTES // (16 * sum(tensor.numel() for tensor in weights))


def _has_converged(ends: SpectrumEnds) -> bool:
    """Whether the residual of the largest eigenvalue is small and its interval narrow."""
    scale = float(np.abs(ends.values[0]).max())
    residual, width = float(ends.residuals[0, 1]), float(ends.high[0, 1] - ends.low[0, 1])
    return residual <= _RESIDUAL * scale and width <= _WIDTH * scale
