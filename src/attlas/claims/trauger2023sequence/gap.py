r"""Section 2.3: the gap with confidence, where everything is exact, and on trained models.

Populations are 24 sequences with noisy labels: 48 atoms, so that a sample of any size is a vector
of counts and the true risk is a finite sum.
"""

import itertools
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.claims.trauger2023sequence.single_layer_instances import ROUNDINGS, D, small_sequences
from attlas.core.generator import generator, seed_of
from attlas.core.norms.balls import project
from attlas.core.old_claim import Claim, Control, Instance, Kind, Link, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_CHAIN = f"{_PAPER}/slack"
_ATOMS, _M, _DELTA = 24, 400, 0.1
_STEPS = 60


def _population(key: PRNGKeyArray, count: int, m: np.ndarray) -> dict[str, Array]:
    """Sequences, two matrices, the law of the atoms (first half y = 1) and counts of a sample."""
    draws = generator(jax.random.fold_in(key, 1))
    weight = draws.dirichlet(np.ones(_ATOMS), count)
    flipped = draws.beta(0.5, 0.5, (count, _ATOMS))
    law = np.concatenate([weight * (1 - flipped), weight * flipped], axis=1)
    shares = draws.multinomial(m, law) / m[:, None]
    found = small_sequences(key, count, _ATOMS, 2)
    arrays = {"law": law, "shares": shares, "m": m.astype(float)}
    return found | {name: jax.device_put(each) for name, each in arrays.items()}


def _samples(key: PRNGKeyArray, count: int, m: int) -> Instance:
    return _population(key, count, np.full(count, m))


def _pooled(X: Array, M: Array) -> Array:
    """Attention's average of the tokens at the first one, for each sequence."""
    logits = jnp.einsum("mtd,de,me->mt", X, M, X[:, 0])
    return jnp.einsum("mt,mtd->md", jax.nn.softmax(logits, axis=1), X)


def _wrong(instance: Instance) -> Array:
    """1 or -1 for each of two classifiers and each atom: wrong or right."""
    scores = jax.vmap(lambda M: _pooled(instance["X"], M)[:, 0])(instance["M"])
    guess = jnp.where(scores > 0, 1.0, -1.0)
    return jnp.concatenate([-guess, guess], axis=1)


def _mean_size(n: Array) -> Array:
    """The mean E|S_n| of a sum of n signs: 2 r binom(2 r, r) / 4^r with r = ceil(n / 2)."""
    r = jnp.maximum(jnp.ceil(n / 2), 1.0)
    log_middle = gammaln(2 * r + 1) - 2 * gammaln(r + 1) - 2 * r * jnp.log(2.0)
    return jnp.where(n > 0, 2 * r * jnp.exp(log_middle), 0.0)


def _complexity(instance: Instance, both: bool = True) -> Array:
    """Exact: the two sums of signs are P + Q and P - Q, and max(|P + Q|, |P - Q|) = |P| + |Q|."""
    first, second = _wrong(instance)
    m = instance["m"]
    same = jnp.round(m * jnp.sum(jnp.where(first * second > 0, instance["shares"], 0.0)))
    rest = _mean_size(m - same) if both else 0.0
    return (_mean_size(same) + rest) / (2 * m)


def _confident(instance: Instance, version: Any, power: float = 0.0) -> Sides:
    """Whether the largest gap of the four classifiers is below the bound."""
    change = jnp.abs(_wrong(instance) @ (instance["law"] - instance["shares"])) / 2
    bound = generalisation_gap(_complexity(instance), _M, _DELTA, 1.0, version)
    held = jnp.max(change) <= bound / _M**power
    return Sides(jnp.where(held, 1.0, 0.0), jnp.asarray(1 - _DELTA))


_SHORT = 10
_ALL = np.array(list(itertools.product((1.0, -1.0), repeat=_SHORT)))


def _enumerated(instance: Instance, both: bool = True) -> Sides:
    """All sign vectors of ten samples against the closed form."""
    counts = jnp.round(instance["shares"] * _SHORT)
    # Atom of each of the ten samples: the first whose cumulated count exceeds its place.
    place = jnp.asarray(np.arange(_SHORT) + 0.5)
    atoms = jnp.sum(jnp.cumsum(counts)[None, :] < place[:, None], axis=1)
    losses = (1 + _wrong(instance)[:, atoms]) / 2
    best = jnp.max(_ALL @ jnp.concatenate([losses, 1 - losses]).T, axis=1)
    return Sides(jnp.mean(best) / _SHORT, _complexity(instance, both))


def _risk(parameters: tuple[Array, Array], instance: Instance, law: Array) -> Array:
    """Mean of the sigmoid loss 1 / (1 + exp(y f)) under a law of the atoms."""
    W, v = parameters
    scores = instance["B"] * (_pooled(instance["X"], W) @ v[:, 0])
    return law @ jax.nn.sigmoid(jnp.concatenate([-scores, scores]))


def _train(instance: Instance) -> Array:
    """Projected gradient steps on the sample's risk; true minus empirical risk at the end."""

    def step(parameters: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], None]:
        slope = jax.grad(_risk)(parameters, instance, instance["shares"])
        W = project(parameters[0] - instance["radius"] * slope[0], "1,1", instance["radius"])
        return (W, project(parameters[1] - slope[1], "1,1", 1.0)), None

    start = instance["M"][0], jnp.full((D, 1), 0.25)
    ended, _ = jax.lax.scan(
        step, (project(start[0], "1,1", instance["radius"]), start[1]), length=_STEPS
    )
    return _risk(ended, instance, instance["law"] - instance["shares"])


_train_all = jax.jit(jax.vmap(_train))


@cache
def _trainings(seed: tuple[int, ...], count: int) -> Instance:
    key = jax.random.key(seed[0])
    draws = generator(jax.random.fold_in(key, 2))
    m = (10 ** draws.uniform(2, 8, count)).astype(int)
    whole = _population(key, count, m)
    X = whole["X"] / jnp.max(jnp.linalg.norm(whole["X"], axis=-1), axis=(1, 2))[:, None, None, None]
    sizes = {"radius": 10 ** draws.uniform(-3, 1, count), "B": 10 ** draws.uniform(-0.5, 1, count)}
    whole |= {"X": X} | {name: jax.device_put(each) for name, each in sizes.items()}
    gap = _train_all(whole)
    return {"gap": gap, **{name: whole[name] for name in ("m", "radius", "B")}}


def _trained(key: PRNGKeyArray, count: int) -> Instance:
    return _trainings(seed_of(key), count)


def _bounded(instance: Instance, version: Any, power: float = 0.0) -> Sides:
    """The sigmoid loss is 1/4-Lipschitz with values in (0, 1)."""
    C, m = trauger2023_cover("1,1", instance["radius"], 1.0, D, D), instance["m"]
    complexity = trauger2023_single(instance["B"], C, 1.0, D, m, version) / 4
    bound = generalisation_gap(complexity, m, 0.05, 1.0, "sharp")
    return Sides(instance["gap"], bound / m**power, scale=jnp.ones_like(bound))


_COMMON: dict[str, Any] = {"paper": _PAPER, "terms": ROUNDINGS}
_FAST = "1/m in place of the root"

EXACT = Claim(
    name=f"{_PAPER}/gap-exact-complexity",
    locator="Section 2.3, two attention classifiers",
    statement=(
        r"\mathbb{E}_\sigma \max_{k,s} \sum_i \sigma_i \frac{1 + s\,\epsilon_{ki}}{2} ="
        r"\frac{\mathbb{E}|S_n| + \mathbb{E}|S_{m-n}|}{2},\quad "
        r"n = \sum_i \mathbb{1} [\epsilon_{1i} = \epsilon_{2i}]"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=partial(_samples, m=_SHORT),
    sides=_enumerated,
    control=Control("the samples on which the two agree alone", partial(_enumerated, both=False)),
    count=32,
    note=(
        "The zero-one losses of two attention classifiers and their negatives: all sign vectors of "
        "ten samples against the closed form, which gives the complexity at any m."
    ),
    **_COMMON,
)

CONFIDENCE = Claim(
    name=f"{_PAPER}/gap-confidence-printed",
    locator="Section 2.3, generalisation bound",
    statement=(
        r"P \Big( \sup_h \big| \mathbb{E}\ell(h) - \tfrac1m \sum_i \ell(h(x_i), y_i) \big| \le"
        r"2\hat R(\ell \circ \mathcal H) + 4c \sqrt{\tfrac{2\ln(4/\delta)}{m}} \Big)"
        r"\ge 1 - \delta"
    ),
    kind=Kind.PROBABILITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=partial(_samples, m=_M),
    sides=partial(_confident, version="printed"),
    control=Control(_FAST, partial(_confident, version="printed", power=0.5)),
    count=256,
    note=(
        "m = 400, delta = 0.1, exact risks and complexities. The bound is 0.60 in the mean, the "
        "gap 0.026: it never failed in 256 samples, and a sixth of it would not either."
    ),
    **_COMMON,
)

CONFIDENCE_SHARP = Claim(
    name=f"{_PAPER}/gap-confidence",
    locator="Section 2.3, generalisation bound, one-sided",
    statement=(
        r"P \Big( \sup_h \big( \mathbb{E}\ell(h) - \tfrac1m \sum_i \ell(h(x_i), y_i) \big) \le"
        r"2\hat R(\ell \circ \mathcal H) + 3c \sqrt{\tfrac{\ln(2/\delta)}{2m}} \Big)"
        r"\ge 1 - \delta"
    ),
    kind=Kind.PROBABILITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=partial(_samples, m=_M),
    sides=partial(_confident, version="sharp"),
    control=Control(_FAST, partial(_confident, version="sharp", power=0.5)),
    count=256,
    note=(
        "c is the length of the interval of the losses. As the class holds the negatives, both "
        "sides of the gap are seen. The bound is 0.24 in the mean, against 0.60 printed; the "
        "largest gap of 256 samples is 0.4 of it, nine in ten are below 0.2: 2 in place of 3, "
        "or no 2 R at all, would pass here. The formula itself is held by compare-gaps."
    ),
    **_COMMON,
)

TRAINED = Claim(
    name=f"{_PAPER}/gap-trained",
    locator="Sections 2.3 and 4.1, on trained models",
    statement=(
        r"\mathbb{E}\ell(f) - \tfrac1m \sum_i \ell(y_i f(X_i)) \le \tfrac14 \cdot 2\hat R +"
        r"3 \sqrt{\tfrac{\ln(2/\delta)}{2m}},\quad \ell(u) = \frac{1}{1+e^u},\quad "
        r"\hat R\ \text{by corollary 4.1.1}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_trained,
    sides=partial(_bounded, version="corrected"),
    control=Control(_FAST, partial(_bounded, version="corrected", power=0.5)),
    ledger=Link(_CHAIN, 60),
    note=(
        "One head, d = 2, trained by 60 projected gradient steps on samples of 100 to 10^8; the "
        "true risk is a finite sum. delta = 0.05. The end of the ledger: at most a two-hundredth "
        "of the bound is reached, so that only a wrong power of m would be seen."
    ),
    **_COMMON,
)
