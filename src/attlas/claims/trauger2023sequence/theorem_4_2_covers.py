r"""Theorem 4.2 with real covers: centres are built, named, and the output measured.

Two layers of one head. Lemma E.1 shares the resolution out, each matrix is replaced by the centre
of its cover on what the hatted network sees, from the first layer up: the greedy cover of Lemma
3.6, that of Lemma 3.3 column by column, the perceptron in the rows (Edelman et al., log T), and
rounding of the entries (parameter counting).
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.edelman2022_cover import perceptron_cover
from attlas.bounds.covering.greedy_cover import greedy_cover_centre, greedy_cover_steps
from attlas.claims.trauger2023sequence.deep_instances import KINDS, magnitude, outputs
from attlas.claims.trauger2023sequence.layer_instances import ROUNDINGS, WIDTH, in_ball
from attlas.core.generator import seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)

_PAPER = "trauger2023sequence"
_LAYERS, _SAMPLES, _TOKENS, _SLOPE = 2, 2, 4, 0.3
_COVERS = ("1,1", "1,inf", "log T", "rounding")
_THETA = 2.0


class _Centre(NamedTuple):
    """A centre and the nats that name it."""

    matrix: np.ndarray
    nats: float


def _coefficient(kind: str, M: np.ndarray, reach: float, points: int) -> float:
    """C of the cover of x -> M x; for rounding that of the first cover, to share out by."""
    rows, columns = M.shape
    if kind == "1,inf":
        square = columns * (np.abs(M).sum(0).max() * reach) ** 2
        return float(columns * square * math.log(2 * rows + 1))
    if kind == "log T":
        # K below e^20, which is more than is ever built here
        nats = _THETA * math.log(2 * rows * points + 1) + math.log(20 / math.log(_THETA))
        return float((np.linalg.norm(M, axis=1).sum() * reach) ** 2 * nats)
    return float((np.abs(M).sum() * reach) ** 2 * math.log(2 * rows * columns + 1))


def _rows(M: np.ndarray, seen: np.ndarray, epsilon: float, reach: float) -> _Centre:
    """The perceptron in each row; norms of rows are told on a grid of ratio theta."""
    norms = np.linalg.norm(M, axis=1)
    total = norms.sum()
    K = (total * reach / epsilon) ** 2
    centre, updates, told = np.zeros_like(M), 0, 0
    # nothing to tell apart where all that is seen is 0
    for row in np.flatnonzero(norms > total / K) if K > 1 and seen.any() else ():
        power = math.ceil(math.log(norms[row] * K / total) / math.log(_THETA))
        rounded = total / K * _THETA ** max(1, power)
        own = epsilon * math.sqrt(rounded / (_THETA * total))
        centre[row], used = perceptron_cover(M[row], seen, own)
        updates, told = updates + used, told + 1
    cells = max(1, math.ceil(math.log(max(K, 2)) / math.log(_THETA)))
    return _Centre(centre, updates * math.log(2 * len(M) * len(seen) + 1) + told * math.log(cells))


def _centre(kind: str, M: np.ndarray, seen: np.ndarray, epsilon: float, reach: float) -> _Centre:
    """The centre near M at distance epsilon on inputs of norm `reach`."""
    rows, columns = M.shape
    if kind == "log T":
        return _rows(M, seen, epsilon, reach)
    if kind == "rounding":
        step = 2 * epsilon / (reach * math.sqrt(M.size))
        return _Centre(step * np.round(M / step), 0.0)
    if kind == "1,1":
        size = float(np.abs(M).sum())
        steps = greedy_cover_steps(size * reach / epsilon)
        near = greedy_cover_centre(M.ravel(), size, steps).reshape(M.shape)
        return _Centre(near if steps else 0 * M, steps * math.log(2 * rows * columns + 1))
    size = float(np.abs(M).sum(0).max())
    steps = greedy_cover_steps(size * math.sqrt(columns) * reach / epsilon)
    near = [greedy_cover_centre(column, size, steps) for column in M.T]
    matrix = np.stack(near, axis=1) if steps else 0 * M
    return _Centre(matrix, columns * steps * math.log(2 * rows + 1))


def _costs(weights: dict[str, np.ndarray], readout: np.ndarray) -> np.ndarray:
    """Costs with 1 for the softmax, readout first, then W_c, W_v, W_QK layer by layer."""
    top = {name: np.linalg.norm(weights[name], 2, axis=(-2, -1)) for name in KINDS}
    cost, found = float(np.linalg.norm(readout)), []
    for place in range(_LAYERS - 1, -1, -1):
        c, v, qk = (top[name][place] for name in KINDS)
        found = [cost, cost * c, cost * c * v, *found]
        cost *= c * v * (1 + 2 * qk)
    return np.asarray([1.0, *found])


def _mixed(X: np.ndarray, query_key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """sigma(Pi_norm(f)) for a batch of samples."""
    logits = np.einsum("nsd,de,nte->nst", X, query_key, X)
    law = np.exp(logits - logits.max(-1, keepdims=True))
    f = in_ball(law / law.sum(-1, keepdims=True) @ X @ value)
    return np.where(f > 0, f, _SLOPE * f)


def _cover(rng: np.random.Generator, kind: str) -> dict[str, np.ndarray | float]:
    """One network with its centres, the resolution and the nats used and allowed."""
    # entries near one of each matrix keep l_1 norms, and with them the number of steps, small
    weights = {}
    for name in KINDS:
        size = rng.uniform(0.02, 0.3) if name == "query_key" else rng.uniform(0.7, 1.0)
        matrix = 0.03 * rng.normal(size=(_LAYERS, WIDTH, WIDTH))
        matrix[:, 0, 0] += 1
        weights[name] = size * matrix
    X = in_ball(np.eye(WIDTH)[0] + 0.3 * rng.normal(size=(_SAMPLES, _TOKENS, WIDTH)))
    readout = np.eye(WIDTH)[0] + 0.03 * rng.normal(size=WIDTH)
    beta, points = _costs(weights, readout), _SAMPLES * _TOKENS
    order = [(place, name) for place in range(_LAYERS) for name in KINDS]
    matrices = [readout[None], *(weights[name][place].T for place, name in order)]
    counts = [_SAMPLES, *[points] * len(order)]
    C = np.asarray([_coefficient(kind, M, 1.0, n) for M, n in zip(matrices, counts, strict=True)])
    gamma = float(np.sum(np.cbrt(C) * np.cbrt(beta) ** 2))
    epsilon = math.sqrt(gamma**3 / 10.0 ** rng.uniform(2.5, 3.7))
    shares = epsilon / gamma * np.cbrt(C / beta)
    hats = {name: np.zeros_like(weights[name]) for name in KINDS}
    seen, nats = X, 0.0
    for place in range(_LAYERS):
        # W_v and W_QK see the rows, W_c what they make of them
        for name in ("value", "query_key", "output"):
            number = 1 + order.index((place, name))
            if name == "output":
                rows = _mixed(seen, hats["query_key"][place], hats["value"][place])
            else:
                rows = seen
            flat = rows.reshape(-1, WIDTH)
            matrix, used = _centre(kind, matrices[number], flat, shares[number], 1.0)
            hats[name][place], nats = matrix.T, nats + used
        inner = _mixed(seen, hats["query_key"][place], hats["value"][place])
        seen = in_ball(inner @ hats["output"][place])
    near, used = _centre(kind, readout[None], seen[:, 0], shares[0], 1.0)
    batch = {f"{name}_hat": hats[name][:, None] for name in KINDS}
    batch |= {name: weights[name][:, None] for name in KINDS}
    batch |= {"samples": X, "readout": readout[None], "readout_hat": near, "epsilon": epsilon}
    batch |= {"nats": nats + used, "allowed": gamma**3 / epsilon**2, "lipschitz": 1.0}
    return batch | {"slope": _SLOPE, "named": float(kind != "rounding")}


@cache
def _batch(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    each = [_cover(rng, _COVERS[place % len(_COVERS)]) for place in range(count)]
    return {name: np.stack([np.asarray(one[name]) for one in each]) for name in each[0]}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    return {name: jnp.asarray(value) for name, value in _batch(seed_of(key), count).items()}


def _error(instance: Instance, shrink: float = 1.0) -> Sides:
    """Largest change over the samples; `shrink` scales the centres' readout."""

    def change(X: Array) -> Array:
        at = {**instance, "X": X, "readout_hat": shrink * instance["readout_hat"]}
        return jnp.abs(outputs(at) - outputs(at, "_hat"))

    scale = magnitude({**instance, "X": instance["samples"]})
    return Sides(jnp.max(jax.vmap(change)(instance["samples"])), instance["epsilon"], scale=scale)


def _names(instance: Instance, factor: float = 1.0) -> Sides:
    return Sides(instance["nats"], factor * instance["allowed"])


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.SHARPENED,
    "provenance": Provenance.DERIVED,
    "instances": _instances,
    "count": 48,
    "terms": 2 * ROUNDINGS,
}

COVER_ERROR = Claim(
    name=f"{_PAPER}/theorem-4-2-covers",
    locator="Theorem 4.2, covers built and measured",
    statement=(
        r"\max_{n \le m} |g(X_n;W,w) - g(X_n;\hat W,\hat w)| \le \epsilon, \quad "
        r"\hat W_j \text{ the centre at distance } \epsilon_j"
        r"= \frac{\epsilon}{\gamma} \Big( \frac{C_j}{\beta_j} \Big)^{1/3}"
    ),
    sides=_error,
    control=Control("the centre 0 for the readout", sides=partial(_error, shrink=0.0)),
    note=(
        "The covers of Lemmas 3.6 and 3.3, of Edelman et al. and rounding, in turn: one recursion "
        "serves them all. Errors of matrices do not add up in the worst way, so that a part of "
        "the resolution stays unused."
    ),
    **_COMMON,
)

COVER_NAMES = Claim(
    name=f"{_PAPER}/theorem-4-2-cover-names",
    locator="Theorem 4.2, the size of the cover",
    statement=r"\ln \#\{\text{names of centres used}\} \le \frac{\gamma^3}{\epsilon^2}",
    sides=_names,
    assumptions=(Assumption("a cover with names", lambda i: i["named"] > 0),),
    control=Control("half of the entropy", sides=partial(_names, factor=0.5)),
    note=(
        "A name lists the steps that lead to the centre. The greedy covers use nearly all that "
        "the formula grants; the perceptron a small part of it."
    ),
    **_COMMON,
)
