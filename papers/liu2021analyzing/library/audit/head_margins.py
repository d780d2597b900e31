r"""The margins that deora2023optimization compares, and the tangent kernel, of one head."""

import math
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from attlas.core.solution import Solution
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.solvers.global_margin import global_margin
from attlas.solvers.linear_margin import linear_margin
from liu2021analyzing.library.audit.tangent_prediction import tangent_prediction

RADIUS = math.sqrt(2)


class HeadMargins(NamedTuple):
    r"""Margins at parameters of norm sqrt(2), and the kernel along the path.

    Attributes:
        ntk: NTK margin of the first record.
        uniform: margin with W = 0, a linear model on the mean token.
        flat: margin of a linear model on all tokens, which no head of this kind can reach.
        best: best margin found by search over heads, a lower bound of the global margin.
        ceiling: certified upper bound of it.
        reachable: best margin found by the same search at the norm of the last record.
        gap: largest relative duality gap of the first three.
        smallest: least eigenvalue of the kernel at each record.
        scale: largest diagonal entry of the kernel at the first record.
        drift: ||K_k - K_0||_F / ||K_0||_F.
        moved: ||K_k - K_0||_2 over half the least eigenvalue at the start: above 1 the argument
            of lazy training no longer keeps the kernel positive.
        errors: of kernel regression and of the NTK's max-margin classifier on fresh samples.
    """

    ntk: float
    uniform: float
    flat: float
    best: float
    ceiling: float
    reachable: float
    gap: float
    smallest: np.ndarray
    scale: float
    drift: np.ndarray
    moved: np.ndarray
    errors: np.ndarray


def head_margins(
    path: list[MultiHead],
    samples: tuple[Float[np.ndarray, "n T d"], Float[np.ndarray, " n"]],
    fresh: tuple[Float[np.ndarray, "N T d"], Float[np.ndarray, " N"]],
    *,
    key: PRNGKeyArray,
    starts: int = 16,
    steps: int = 1000,
) -> HeadMargins:
    r"""Margins and tangent kernel of one head that reads the last token.

    Args:
        path: its records, the start first.
        samples: X and y that it was trained on.
        fresh: X and y that it was not trained on.
        key: of the search for the global margin.
        starts: of that search.
        steps: of that search.

    Returns:
        The numbers, NaN if not converged; sections 5.2 and 7 of deora2023optimization.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> head = MultiHead(jnp.zeros((1, 1)), jnp.zeros((1, 1, 1)), Decoder.LAST)
        >>> data = np.array([[[2.0]], [[-1.0]]]), np.array([1.0, -1.0])
        >>> found = head_margins([head], data, data, key=jax.random.key(0), starts=3, steps=1)
        >>> print(f"{found.ntk:.4f} {found.uniform:.4f} {found.best:.4f} {found.smallest[0]:.4f}")
        1.4142 1.4142 1.4142 0.0000
    """
    X, y = samples
    tangent = tangent_prediction(path[0], X, y, fresh[0])
    put = jax.device_put(X), jax.device_put(y)
    mean = X.mean(axis=1, keepdims=True)
    solved = (tangent.margin, linear_margin(mean, y), linear_margin(X, y))
    norm = math.hypot(*(float(np.linalg.norm(a)) for a in (path[-1].U, path[-1].W)))
    best, own = (
        global_margin(*put, 1, Decoder.LAST, radius=r, starts=starts, steps=steps, key=key)
        for r in (RADIUS, norm or RADIUS)
    )
    grams = np.stack([ntk_gram(model, X) for model in path])
    drift, moved = _moved(grams, tangent.eigenvalues[0] / 2)
    wrong = [np.mean(fresh[1] * f <= 0) for f in (tangent.regression, tangent.classifier)]
    ntk, uniform, flat = (_scaled(each) for each in solved)
    return HeadMargins(
        ntk=ntk,
        uniform=uniform,
        flat=flat,
        best=float(best.certificate["lower"]),
        ceiling=float(best.certificate["upper"]),
        reachable=float(own.certificate["lower"]),
        gap=max(float(np.nan_to_num(each.certificate["gap"])) for each in solved),
        smallest=np.linalg.eigvalsh(grams)[:, 0],
        scale=float(np.diag(grams[0]).max()),
        drift=drift,
        moved=moved,
        errors=np.array(wrong),
    )


def _moved(grams: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Change of the kernel, relative to its norm and to half of lambda."""
    change = grams - grams[0]
    drift = np.linalg.norm(change, axis=(1, 2)) / np.linalg.norm(grams[0])
    spectral = np.linalg.norm(change, 2, axis=(1, 2))
    return drift, spectral / half if half > 0 else np.full(len(grams), np.inf)


def _scaled(found: Solution) -> float:
    """A margin of parameters of norm 1 at norm sqrt(2)."""
    return RADIUS * float(found.value) if bool(found.converged) else math.nan
