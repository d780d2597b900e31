r"""Heads that read the last token, trained on tokenized mixtures as the audit reads them.

One head f(X) = u' X' softmax(X W' x_T) per member, by gradient descent with a certified step; all
members, and the trainings that leave a sample out, are one program.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_2
from attlas.core.checkpoint import is_checkpointed
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.measures.statistics.stability import average_model_stability
from attlas.models.attention.multi_head import Decoder, MultiHead, make_multi_head
from attlas.training.ensemble import in_chunks
from attlas.training.fit import fit
from attlas.training.gradient_descent import Samples, empirical_loss
from attlas.training.trajectory import Trajectory
from liu2021analyzing.library.audit.head_audit import AuditedHeads
from liu2021analyzing.library.audit.single_head_path import HeadPath, single_head_path


class MixtureSamples(NamedTuple):
    """Samples of one mixture per member.

    Attributes:
        X: training samples.
        y: labels.
        fresh_X: samples that are not trained on.
        relevant: which tokens of the training samples are relevant.
        fresh_relevant: the same of the fresh ones.
        R: bound of the tokens' norms, of all members.
    """

    X: Float[np.ndarray, "e n T d"]
    y: Float[np.ndarray, "e n"]
    fresh_X: Float[np.ndarray, "e N T d"]
    fresh_y: Float[np.ndarray, "e N"]
    relevant: np.ndarray
    fresh_relevant: np.ndarray
    R: float


class Descent(NamedTuple):
    """Gradient descent on a head.

    Attributes:
        radius: norm of u up to which the step is certified.
        records: number of recorded steps, the start included.
        left_out: number of leave-one-out trainings.
        deviation: standard deviation of the Gaussian start.
    """

    radius: float
    steps: int
    records: int
    left_out: int
    deviation: float


def sample_mixtures(
    key: Key[Array, ""],
    members: int,
    sizes: tuple[int, int],
    *,
    T: int,
    d: int,
    M: int,
    Z_mu: float,
    Z: float,
) -> MixtureSamples:
    """One mixture per member, with one relevant token of T, and samples of it.

    Args:
        sizes: training samples n and fresh samples N.
        T: tokens of a sample.
        d: dimension of a token.
        Z_mu: bound of the noise along the relevant patterns, and M times that along the others.
        Z: bound of the norm of the noise.

    Examples:
        >>> found = sample_mixtures(jax.random.key(0), 2, (3, 5), T=4, d=6, M=2, Z_mu=0.4, Z=1.0)
        >>> found.X.shape, found.fresh_X.shape, found.relevant.sum(axis=2).tolist()
        ((2, 3, 4, 6), (2, 5, 4, 6), [[1, 1, 1], [1, 1, 1]])
    """
    members_arrays, R = [], 0.0
    for member in range(members):
        member_key = jax.random.fold_in(key, member)
        mixture = make_tokenized_mixture(
            member_key, d=d, M=M, zeta=1 / T, Z_mu=Z_mu, Z_nu=Z_mu, Z=Z
        )
        train, fresh = (
            sample_mixture(jax.random.fold_in(member_key, k), mixture, size, T)
            for k, size in enumerate(sizes, 1)
        )
        R = max(R, float(mixture.R))
        members_arrays.append((train.X, train.y, fresh.X, fresh.y, train.relevant, fresh.relevant))
    X, y, fresh_X, fresh_y, relevant, fresh_relevant = (
        np.stack([np.asarray(a) for a in arrays]) for arrays in zip(*members_arrays, strict=True)
    )
    return MixtureSamples(X, y, fresh_X, fresh_y, relevant, fresh_relevant, R)


def train_heads(samples: MixtureSamples, descent: Descent, seed: int = 0) -> AuditedHeads:
    r"""Train one head per member; the step is $1 / \beta_2$ at a radius of u.

    Every step lowers the risk as long as no u leaves the radius; see `training_facts`.

    Args:
        samples: training and fresh samples of every member.
        descent: schedule and step size of the training.

    Returns:
        What `audit_heads` reads, records at step 0 and at log-spaced steps.

    Examples:
        >>> samples = sample_mixtures(jax.random.key(0), 1, (3, 5), T=4, d=6, M=2, Z_mu=0.4, Z=1.0)
        >>> heads = train_heads(samples, Descent(4.0, 20, 3, left_out=1, deviation=0.2))
        >>> heads.steps.tolist(), heads.path.W.shape, heads.stability[:, 0].tolist()
        ([0, 1, 20], (1, 3, 1, 6, 6), [0.0])
    """
    e, n, T, d = samples.X.shape
    rate = 1 / float(deora2023_beta_2(1, d, samples.R, descent.radius, 1, "sharp"))
    late = np.geomspace(descent.steps / 1000, descent.steps, descent.records - 1)
    schedule = np.unique([0, *np.ceil(late).astype(int)])
    draw = np.random.default_rng([seed, 7])
    shapes = (e, 1, d), (e, 1, d, d)
    start = [jax.device_put(descent.deviation * draw.normal(size=shape)) for shape in shapes]
    template = make_multi_head(1, T, d, Decoder.LAST)
    heads = jax.tree.unflatten(jax.tree.structure(template), start)
    blind = np.ones((1 + descent.left_out, n))
    # samples are exchangeable: the first ones stand for all
    blind[np.arange(1, 1 + descent.left_out), np.arange(descent.left_out)] = 0
    arrays = samples[:4]
    shared = [jax.device_put(a) for a in (blind, np.float64(rate), schedule)]
    width = 1 if is_checkpointed() else e  # what is kept is a head, not a part of all of them
    trained = in_chunks(lambda part: _train(part[0], part[1], *shared), (heads, arrays), width)
    path, stability, seen = jax.tree.map(np.asarray, trained)
    return AuditedHeads(path, seen, stability, *arrays, samples.R, rate, schedule)


@loop_jit(jit=eqx.filter_jit)
def _train(
    start: MultiHead, data: tuple[Array, ...], weights: Array, rate: Array, schedule: Array
) -> tuple[MultiHead, Array, HeadPath]:
    """Paths on all samples, the average stability along them, and what is seen on them."""
    loss = empirical_loss("logistic")

    def train_member(head: MultiHead, X: Array, y: Array, *fresh: Array) -> tuple:
        def path(weights: Array) -> Trajectory:
            samples = Samples(X, y, weights)
            return fit(loss, Partial(optax.sgd, rate), head, samples, record_at=schedule)

        paths = jax.vmap(path)(weights)
        full, left_out = (
            jax.tree.map(lambda a, part=part: a[part], paths.params) for part in (0, slice(1, None))
        )
        stability = average_model_stability(full, left_out)
        return full, stability, single_head_path(full, X, y, *fresh)

    return jax.vmap(train_member)(start, *data)


def training_facts(
    heads: AuditedHeads, samples: MixtureSamples, radius: float
) -> dict[str, np.ndarray]:
    """What the audit cannot see: the relevant tokens, and whether the step was certified.

    Args:
        heads: trained on the samples.
        samples: samples with their relevant tokens.
        radius: radius of u for which the step was certified.

    Returns:
        `relevant_mass`, the attention on the relevant tokens of fresh samples, by head and
        record; `relevant_selected`, the share of training samples whose selected token is
        relevant; `certified`, whether u stayed within the radius.

    Examples:
        >>> samples = sample_mixtures(jax.random.key(0), 1, (3, 5), T=4, d=6, M=2, Z_mu=0.4, Z=1.0)
        >>> heads = train_heads(samples, Descent(4.0, 20, 3, left_out=1, deviation=0.0))
        >>> found = training_facts(heads, samples, 4.0)
        >>> found["relevant_mass"][0, 0].item()  # W = 0: one of four tokens
        0.25
        >>> found["certified"].tolist()
        [True]
    """
    tokens = heads.seen.tokens[..., None]
    mass = np.einsum("esnt,ent->esn", heads.seen.attention, samples.fresh_relevant).mean(-1)
    picked = np.take_along_axis(samples.relevant, np.asarray(tokens), 2).mean(axis=(1, 2))
    inside = np.asarray(heads.seen.norms)[..., 0].max(axis=1) <= radius
    return {"relevant_mass": mass, "relevant_selected": picked, "certified": inside}
