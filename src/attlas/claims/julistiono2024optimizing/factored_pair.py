r"""Beyond the paper: the factored pair W = W_K W_Q' against the nuclear-norm attention SVM.

Every theorem of the paper merges the two factors. Gradient descent on both, here with normalised
steps from a small start, is expected to follow argmin ||W||_* in place of the Frobenius norm
(Tarzanagh et al. 2023). Two samples of two tokens in three dimensions.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.claims.julistiono2024optimizing.flow_instances import (
    best_tokens,
    gaussian_selections,
    seed_of,
)
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
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.nuclear_svm import nuclear_svm
from attlas.tasks.token_selection.factored import train_factored

_PAPER = "julistiono2024optimizing"
_COUNT, _RATE = 40, 0.02
_RECORDS = (1000, 2000, 4000)


def _unit(W: np.ndarray) -> np.ndarray:
    return W / np.linalg.norm(W, axis=(-2, -1), keepdims=True)


@cache
def _factored(seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    data = gaussian_selections(draw, _COUNT, 2, 2, 3)
    tokens = best_tokens(data)
    nuclear = [nuclear_svm(data.X[i], data.z[i], tokens[i]) for i in range(_COUNT)]
    plain = attention_svm_batch(data.X, data.z, tokens, 2.0)
    factors = jnp.asarray(0.03 * draw.normal(size=(2, _COUNT, 3, 3)))
    train = partial(train_factored, learning_rate=_RATE, steps=_RECORDS[-1], record_at=_RECORDS)
    W = _unit(np.asarray(jax.vmap(train)(data, factors[0], factors[1]).W))
    aim = _unit(np.stack([np.asarray(found.value) for found in nuclear]))
    own = np.sum((W - aim[:, None]) ** 2, axis=(2, 3)) / 2
    wrong = np.sum((W - _unit(np.asarray(plain.value))[:, None]) ** 2, axis=(2, 3)) / 2
    solved = np.array([int(found.result) == 0 for found in nuclear]) & (
        np.asarray(plain.result) == 0
    )
    steps = np.tile(np.array(_RECORDS, float), (_COUNT, 1))
    return {"certified": solved, "steps": steps, "own": own, "wrong": wrong}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    found = _factored(seed_of(key))
    return {name: jnp.asarray(value[:count]) for name, value in found.items()}


def _distance(instance: Instance, to: str = "own") -> Sides:
    left = instance[to]
    # One minus the cosine; the SVM's relative gap of 1e-6 bounds how well its direction is known.
    return Sides(left, jnp.zeros_like(left), jnp.ones_like(left), scales=instance["steps"])


FACTORED = Claim(
    name=f"{_PAPER}/factored-pair",
    paper=_PAPER,
    locator="beyond the paper: W = W_K W_Q'",
    statement=(
        r"W(k)=W_K(k)W_Q(k)^\top:\quad \lim_{k\to\infty}\frac{W(k)}{\|W(k)\|_F}"
        r"=\frac{W_\star}{\|W_\star\|_F},\quad W_\star=\arg\min_W\|W\|_*\ \text{s.t.}\ "
        r"(X_{i\alpha_i}-X_{it})^\top W z_i\ge1"
    ),
    kind=Kind.LIMIT,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_distance,
    assumptions=(Assumption("both attention SVMs are certified", lambda i: i["certified"]),),
    control=(Control("the Frobenius attention SVM", sides=lambda i: _distance(i, to="wrong")),),
    count=_COUNT,
    note="Normalised gradient descent on both factors, from entries of size 0.03.",
)
