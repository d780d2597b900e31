"""The ledger from Theorem 4.1 to PAC-Bayes, on a layer that was trained on sparse majority."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.bounds.generalisation.union import union
from attlas.data.sparse_majority import SparseMajority
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from attlas_bounds.library.bounds.linear_attention import (
    LinearAttention,
    MarginSample,
    measure_margins,
)
from attlas_bounds.library.bounds.local_margin_bound import local_margin_bound
from attlas_bounds.library.bounds.margin_bounds import cover_margin_bound, ramp_margin_bound
from attlas_bounds.library.bounds.pac_bayes_margin import pac_bayes_margin

STEPS = (
    "printed, the unknown constant 1",
    "constants explicit",
    "chain, softmax constant 1",
    "linear readout",
    "ramp in place of hinge",
    "tokens met",
    "one-sided cover",
    "kl in place of Hoeffding",
    "local Rademacher complexity",
    "PAC-Bayes with the certificate",
)
"""Each step includes those before it, but for the last two, which replace the cover with kl."""
INSTEAD: dict[str, str] = dict.fromkeys(STEPS[-2:], "kl in place of Hoeffding")
"""The step to compare with, where it is not the previous one."""
GUESSING = 0.5


@dataclass(frozen=True)
class MarginLedger:
    """The ledger's bounds by step, and the errors.

    Attributes:
        certified: bound on the error from the m sequences, each step alone at delta.
        shared: the same at delta over the number of bounds; all hold together at delta.
        least: the least of the shared ones.
        needed: sequences until the bound is below the error of guessing, at the same margins; NaN
            for the printed step, which is not a bound.
        train_error: share of wrong sequences of the m.
        held_out: share of wrong fresh sequences.
        held_out_bound: exact binomial bound from the fresh sequences.
        margin: least margin of the m, readouts of l_1 norm 1.
    """

    certified: Float[np.ndarray, " s"]
    shared: Float[np.ndarray, " s"]
    least: float
    needed: Float[np.ndarray, " s"]
    train_error: float
    held_out: float
    held_out_bound: float
    margin: float


def _ledger_bounds(sample: MarginSample, B_x: float, delta: float) -> tuple[RiskBound, ...]:
    """Every step of the ledger on one sample, in the order of `STEPS`."""
    theorem = ("printed", "corrected", "sharp", "linear")
    return (
        *(ramp_margin_bound(sample, delta, step=s, loss="hinge", trivial=GUESSING)
          for s in theorem),
        ramp_margin_bound(sample, delta, step="linear", trivial=GUESSING),
        ramp_margin_bound(sample, delta, trivial=GUESSING),
        cover_margin_bound(sample, B_x, delta, deviation="Hoeffding", trivial=GUESSING),
        cover_margin_bound(sample, B_x, delta, trivial=GUESSING),
        local_margin_bound(sample, B_x, delta, trivial=GUESSING),
        pac_bayes_margin(sample, delta, trivial=GUESSING),
    )  # fmt: skip


def margin_ledger(
    key: Key[Array, ""],
    data: SparseMajority,
    radius: float,
    settings: ProjectedSettings,
    delta: float,
) -> MarginLedger:
    """Train a layer with a linear readout in a ball, and bound its error by every step.

    Args:
        data: data whose tokens have norm at most 1.
        radius: radius of the ball of W_QK.
        delta: probability that one step fails, and that the least of all does.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
        >>> import equinox as eqx
        >>> from attlas.data.unit_bit_embedding import one_hot_bits
        >>> data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(40, 30, 1, 5))
        >>> data = eqx.tree_at(lambda own: own.embedding, data, one_hot_bits(3))
        >>> own = ProjectedSettings(steps=2, batch=4)
        >>> margin_ledger(jax.random.key(1), data, 2.0, own, 0.05).certified.shape
        (10,)
    """
    linear_settings = settings._replace(linear=True)
    stacked = train_projected(
        key, data, jnp.asarray([radius], data.embedding.cls.dtype), linear_settings
    )
    model = jax.tree.map(lambda a: a[0], stacked)
    sample = _sample(model, data, data.bits, data.labels)
    fresh = _sample(model, data, data.validation_bits, data.validation_labels)
    bounds = _ledger_bounds(sample, 1.0, delta)
    # The printed step is no bound and takes no share.
    shared = _ledger_bounds(sample, 1.0, delta / (len(STEPS) - 1))
    wrong, tested = int(np.sum(fresh.margins <= 0)), len(fresh.margins)
    return MarginLedger(
        np.array([bound.bound for bound in bounds]),
        np.array([math.nan, *(bound.bound for bound in shared[1:])]),
        union(*shared[1:]).bound,
        np.array([math.nan, *(bound.samples_until_nonvacuous for bound in bounds[1:])]),
        sample.error,
        wrong / tested,
        held_out_bound(wrong, tested, delta).bound,
        float(sample.margins.min() / np.abs(sample.readouts).sum()),
    )


def _sample(
    model: SingleLayerTransformer, data: SparseMajority, bits: Array, labels: Array
) -> MarginSample:
    """Margins of the function that the layer is; [CLS] is among the tokens, and always the same."""
    tokens = np.asarray(jax.vmap(data.embedding)(bits), float)
    readouts = np.einsum("hdk,hke,e->hd", *(np.asarray(a, float) for a in
                         (model.value, model.output, model.w)))  # fmt: skip
    query_keys = np.asarray(model.query_key, float)
    cls = np.asarray(data.embedding.cls + data.embedding.positions[-1], float)
    signs = 2.0 * np.asarray(labels) - 1
    return measure_margins(LinearAttention(readouts, query_keys), tokens, cls, signs)
