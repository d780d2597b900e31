r"""Appendix A: covers of maps from covers of their rows.

D = W - centre has the rows D_j, X the inputs, epsilon bounds the distance of every row. The rows
of the covered instances are covered by the perceptron of
`attlas.bounds.covering.edelman2022_cover`.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.covering.edelman2022_cover import perceptron_cover
from attlas.bounds.covering.trauger2023_cover import trauger2023_mapping_entropy
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_ROWS, _COLUMNS, _POINTS = 4, 3, 6
_ROUNDINGS = 256
"""Up to 60 updates of a centre, products of 3 terms and sums of 4."""
_EXPONENTS = (1.0, 2.0, 4.0)


def _covered(key: PRNGKeyArray, count: int) -> Instance:
    """Rows covered on six points, a third of the matrices with equal rows; the updates counted."""
    rng = generator(key)
    b, B_x = 10 ** rng.uniform(-2, 2, (2, count))
    ratio = rng.uniform(0.8, 6, count)
    # the first input is along the first row: one update of the right length does, two would be
    # more than 1.405^2
    ratio[::5] = 1.405
    epsilon = b * B_x / ratio
    W = rng.normal(size=(count, _ROWS, _COLUMNS))
    W[::3] = W[::3, :1]
    W *= b[:, None, None] / np.linalg.norm(W, axis=2, keepdims=True)
    X = rng.normal(size=(count, _POINTS, _COLUMNS))
    X *= B_x[:, None, None] / np.linalg.norm(X, axis=2, keepdims=True)
    # The first input lies along the first row: the distance of that row is large there.
    X[:, 0] = W[:, 0] * (B_x / b)[:, None]
    centre, updates = np.zeros_like(W), np.zeros((count, _ROWS))
    for i in range(count):
        for j in range(_ROWS):
            found = perceptron_cover(W[i, j], X[i], float(epsilon[i]))
            centre[i, j], updates[i, j] = found
    parts = {"W": W, "D": W - centre, "X": X, "updates": updates}
    parts |= {"b": b, "B_x": B_x, "epsilon": epsilon}
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _mapped(instance: Instance, rooted: bool = True) -> Sides:
    """Distances of the maps for q = 1, 2 and 4, relative to the largest distance of a row."""
    gaps = jnp.abs(instance["D"] @ instance["X"].T)
    largest = jnp.max(gaps)
    ratio = gaps / largest
    left = jnp.stack([jnp.max(jnp.sum(ratio**q, axis=0) ** (1 / q)) for q in _EXPONENTS])
    right = jnp.asarray([_ROWS ** (1 / q) if rooted else 1.0 for q in _EXPONENTS])
    # the names of the rows' centres together, in units of one choice, against k C
    told = jnp.sum(instance["updates"])
    C = (instance["b"] * instance["B_x"] / instance["epsilon"]) ** 2
    size = trauger2023_mapping_entropy(C, _ROWS)
    return Sides(jnp.append(left, told), jnp.append(right, size))


APPENDIX_A = Claim(
    name=f"{_PAPER}/appendix-a",
    paper=_PAPER,
    locator="Appendix A",
    statement=(
        r"|(W_j-\hat W_j) x_t| \le \epsilon\ (j \in [k]) \Rightarrow "
        r"\|(W-\hat W) x_t\|_q \le k^{1/q} \epsilon, \quad "
        r"\log N_\infty(\mathcal{F}, k^{1/q} \epsilon, N, \|\cdot\|_q) \le k\,C"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_covered,
    sides=_mapped,
    control=Control("epsilon without k^{1/q}", sides=partial(_mapped, rooted=False)),
    count=48,
    terms=_ROUNDINGS,
    note=(
        "q = 1, 2 and 4; equality where all rows are equal. The cover of the maps is the product "
        "of those of the rows, so that the logs of their sizes add up. The print lacks absolute "
        "values under the power q."
    ),
)


def _steps(instance: Instance, factor: float = 1.0) -> Sides:
    gaps = jnp.max(jnp.abs(instance["D"] @ instance["X"].T), axis=1) / instance["epsilon"]
    allowed = (instance["b"] * instance["B_x"] / instance["epsilon"]) ** 2
    left = jnp.concatenate([gaps, instance["updates"]])
    right = jnp.concatenate([jnp.ones_like(gaps), factor * allowed * jnp.ones_like(gaps)])
    return Sides(left, right)


APPENDIX_A_ROWS = Claim(
    name=f"{_PAPER}/appendix-a-rows",
    paper=_PAPER,
    locator="Appendix A, a cover of one row",
    statement=(
        r"\|w\|_2 \le B_w,\ \|x_t\|_2 \le B_x: \quad "
        r"\text{fewer than } \frac{B_w^2 B_x^2}{\epsilon^2} \text{ updates reach } "
        r"\max_t |(w-u)^\top x_t| \le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_covered,
    sides=_steps,
    control=Control("an eighth of the updates", sides=partial(_steps, factor=0.125)),
    count=48,
    terms=_ROUNDINGS,
    note=(
        "The scalar cover that Appendix A starts from, made explicit: (2 N + 1) choices an update "
        "give C = B_w^2 B_x^2 ln(2 N + 1) / epsilon^2. Updates of 0.4 of the length are noticed."
    ),
)
