r"""Gradient descent of Definition 3.5 of gu2024exploring: one softmax network, or many at once.

W(tau + 1) = W(tau) - eta Delta W(tau) on L = (1/2) sum (F - y)^2 with a fixed, by the closed form
of Claim 3.4. A record holds the weights only on demand, so that widths of 2^14 with many
records fit; what the theorems ask of them is reduced to numbers on the way.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas._jax.device_arrays import entry
from attlas._jax.loop_jit import loop_jit
from attlas.core.checkpoint import is_checkpointed
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.training.ensemble import accelerator_width, core_share, in_chunks, on_cpu
from attlas.training.trajectory import Trajectory, recording_schedule
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient


class Keep(NamedTuple):
    """What is recorded beyond the numbers that cost nothing.

    Attributes:
        weights: W at each record, d m numbers each.
        drift: distance of the kernel from its start, (k n)^2 m operations per record.
    """

    weights: bool = False
    drift: bool = False


NUMBERS_ONLY = Keep()
_OBSERVED: tuple[str, ...] = ("movement", "largest_step", "outputs", "test_outputs", "drift")


def _descend_softmax(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    step_size: Float[Array, ""],
    schedule: Int[Array, " s"],
    X_test: Float[Array, "n2 d"] | None = None,
    keep: Keep = NUMBERS_ONLY,
) -> Trajectory:
    """`train_softmax_network` without checks, inside `jax.jit` and `jax.vmap`."""
    start = network.W
    reference = dense_softmax_ntk(network, X) if keep.drift else None

    def step(_: Any, W: Array) -> Array:
        return W - step_size * outputs_and_gradient(_with(network, W), X, Y)[1]

    def record(carry: tuple[Array, Array], gap: Array) -> tuple[tuple[Array, Array], tuple]:
        W = jax.lax.fori_loop(0, gap, step, carry[0])
        now = _with(network, W)
        F, gradient = outputs_and_gradient(now, X, Y)
        numbers = jnp.sum((F - Y) ** 2) / 2, _largest_column(W - start)
        move = step_size * gradient
        further = None if X_test is None else jax.vmap(now)(X_test)
        away = None if reference is None else jnp.linalg.norm(dense_softmax_ntk(now, X) - reference)
        measured = (*numbers, _largest_column(move), F, further, away, W if keep.weights else None)
        # The step that follows reuses this gradient: recording every step costs no second one.
        return (W - move, W), measured

    before = jnp.concatenate((schedule[:1], jnp.diff(schedule) - 1))
    (_, last), measured = jax.lax.scan(record, (start, start), before)
    return _package(schedule, _with(network, last), measured)


def _package(schedule: Array, last: SoftmaxNetwork, measured: tuple[Any, ...]) -> Trajectory:
    loss, *numbers, F, further, away, W = measured
    seen = dict(zip(_OBSERVED, (*numbers, F, further, away), strict=True))
    return Trajectory(
        schedule,
        None if W is None else {"W": W},
        last,
        loss,
        observed={name: a for name, a in seen.items() if a is not None},
        result=_result(loss, *numbers),
    )


def train_softmax_network(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    *,
    step_size: float | Float[Array, ""],
    steps: int,
    record_at: Sequence[int] | None = None,
    X_test: Float[Array, "n2 d"] | None = None,
    keep: Keep = NUMBERS_ONLY,
) -> Trajectory:
    r"""W(tau + 1) = W(tau) - eta Delta W(tau), Definition 3.5 of gu2024exploring.

    Args:
        network: the start, of any activation.
        step_size: eta; m eta is the natural scale of the softmax network, eta that of the others.
        record_at: increasing step numbers; log-spaced when None.
        X_test: further samples, predicted at each record.

    Returns:
        The recorded steps, in the dtype of the network: the loss (1/2) ||F - Y||_F^2; `last`, the
        network at the last record; W if `keep.weights`. Observed are movement, max_r
        ||w_r - w_r(0)||; largest_step, max_r eta ||Delta w_r|| of the step that starts at the
        record; outputs, F on the training samples; test_outputs, on further ones; and drift,
        ||H - H(0)||_F, where it is asked for.

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> one = jnp.ones((1, 1))
        >>> path = train_softmax_network(network, one, one, step_size=0.5, steps=60)
        >>> bool(path.loss[-1] < 1e-9)
        True
    """
    _require_regression(network, X, Y, step_size, X_test)
    schedule = jnp.asarray(recording_schedule(steps, record_at), int)
    size = jnp.asarray(step_size, network.W.dtype)
    return _descend(network, X, Y, size, schedule, X_test, keep)


def train_softmax_networks(
    networks: SoftmaxNetwork,
    X: Float[Array, "n d"] | Float[Array, "e n d"],
    Y: Float[Array, "n k"] | Float[Array, "e n k"],
    *,
    step_size: float | Float[Array, " e"],
    steps: int,
    record_at: Sequence[int] | None = None,
    X_test: Float[Array, "n2 d"] | None = None,
    keep: Keep = NUMBERS_ONLY,
    chunk: int | None = None,
) -> Trajectory:
    r"""`train_softmax_network` of many networks of one shape, in chunks of one program.

    Args:
        networks: starts along a leading axis of W and of a, stacked by `jax.tree.map`.
        X: samples, shared, or one set each with a leading axis.
        Y: targets, shared or one set each.
        step_size: eta, one for all or one each.
        record_at: increasing step numbers; log-spaced when None.
        X_test: further samples, shared.
        chunk: networks per chunk; when None, equal shares of the cores, which run at once, one
            where states are checkpointed, or what fills an accelerator.

    Returns:
        The recorded steps, networks along the leading axis.

    Examples:
        >>> start = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> networks = jax.tree.map(lambda a: jnp.stack([a] * 3), start)
        >>> one = jnp.ones((1, 1))
        >>> path = train_softmax_networks(
        ...     networks, one, one, step_size=jnp.array([0.1, 0.2, 0.5]), steps=1, record_at=(1,))
        >>> path.movement[:, 0].tolist()
        [0.1, 0.2, 0.5]
    """
    count, dtype = networks.W.shape[0], networks.W.dtype
    stacked = X.ndim == 3, Y.ndim == 3
    first = jax.tree.map(lambda a: entry(a, 0), networks)
    _require_regression(
        first, entry(X, 0) if stacked[0] else X, entry(Y, 0) if stacked[1] else Y, step_size, X_test
    )
    schedule = jnp.asarray(recording_schedule(steps, record_at), int)
    sizes = np.broadcast_to(np.asarray(step_size, dtype), (count,))
    batch = (networks, X if stacked[0] else None, Y if stacked[1] else None, sizes)
    shared = (None if stacked[0] else X, None if stacked[1] else Y, schedule, X_test)
    # Recorded numbers apart, a network holds its parameters and attention, and their gradients.
    size = 4 * dtype.itemsize * (networks.W.size // count + X.shape[-2] * networks.a.shape[-1])
    share = 1 if is_checkpointed() else core_share(count)
    usual = share if on_cpu() else accelerator_width(size)
    width = usual if chunk is None else chunk
    trajectory = in_chunks(lambda part: _descend_many(part, shared, keep), batch, width)
    return eqx.tree_at(lambda path: path.steps, trajectory, schedule)


def _require_regression(
    network: SoftmaxNetwork, X: Array, Y: Array, step_size: Any, X_test: Array | None = None
) -> None:
    """Check that samples, targets and step size fit the network."""
    d, k = network.W.shape[0], network.a.shape[0]
    for samples in (X,) if X_test is None else (X, X_test):
        if samples.ndim != 2 or samples.shape[1] != d:
            raise UserError(
                f"samples of shape {samples.shape} meet a network of input dimension {d}: "
                "give one sample per row"
            )
    if Y.shape != (X.shape[0], k):
        raise UserError(
            f"targets of shape {Y.shape} meet {X.shape[0]} samples and {k} outputs: "
            "give one row per sample"
        )
    sizes = np.asarray(step_size)
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise UserError(f"step_size = {step_size} is not positive and finite: choose another")


@loop_jit(jit=eqx.filter_jit)
def _descend(*arguments: Any) -> Trajectory:
    return _descend_softmax(*arguments)


@loop_jit(jit=eqx.filter_jit)
def _descend_many(batch: tuple, shared: tuple, keep: Keep) -> Trajectory:
    X_all, Y_all, schedule, X_test = shared

    def descend(member: tuple) -> Trajectory:
        network, X, Y, size = member
        samples, targets = X_all if X is None else X, Y_all if Y is None else Y
        return _descend_softmax(network, samples, targets, size, schedule, X_test, keep)

    # XLA's batched products on a CPU are slow: one network after the other takes 0.4 of the time
    # of all together at m = 1024, on each core. An accelerator is faster with all together.
    return jax.lax.map(descend, batch) if on_cpu() else jax.vmap(descend)(batch)


def _largest_column(W: Float[Array, "d m"]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.max(jnp.sum(W**2, axis=0)))


def _with(network: SoftmaxNetwork, W: Array) -> SoftmaxNetwork:
    return eqx.tree_at(lambda part: part.W, network, W)


def _result(*numbers: Array) -> Int[Array, ""]:
    finite = jnp.all(jnp.isfinite(jnp.stack(numbers)))
    code = jnp.where(finite, Result.MAX_STEPS.value, Result.NOT_FINITE.value)
    return code.astype(jnp.int32)


def train_on_nested(
    start: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    sizes: Sequence[int],
    *,
    step_size: Float[Array, " e"] | Float[np.ndarray, " e"],
    steps: int,
    record_at: Sequence[int] | None = None,
    X_test: Float[Array, "n2 d"] | None = None,
) -> Trajectory:
    """`train_softmax_networks` on nested training sets, which share one program.

    Rows of zeros fill up the smaller sets. They change nothing: the output of a network whose
    second layer sums to zero is zero at zero, and so is the gradient in the first layer.

    Args:
        start: the network, its second layer balanced as at the symmetric initialisation.
        sizes: number of samples of each training.
        record_at: increasing step numbers; log-spaced when None.

    Returns:
        The recorded steps, sizes along the leading axis.

    Raises:
        UserError: if a size is not among the samples, or the second layer is not balanced.

    Examples:
        >>> start = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> one = jnp.ones((3, 1))
        >>> path = train_on_nested(start, one, one, (1, 3), step_size=np.array([0.1, 0.1]),
        ...                        steps=1, record_at=(0, 1))
        >>> path.loss[:, 0].tolist()
        [0.5, 1.5]
    """
    wanted = np.asarray(sizes)
    if not (wanted.size and wanted.min() >= 1 and wanted.max() <= len(X)):
        raise UserError(f"sizes = {tuple(sizes)}: choose from 1 to the {len(X)} samples")
    sums, terms = np.asarray(start.a.sum(axis=1)), start.a.shape[1]
    if np.abs(sums).max() > terms * np.finfo(sums.dtype).eps * float(jnp.abs(start.a).max()):
        raise UserError("the second layer does not sum to zero: start from symmetric_network")
    inside = jnp.asarray(np.arange(len(X))[None] < wanted[:, None])[:, :, None]
    return train_softmax_networks(
        jax.tree.map(lambda a: jnp.stack([a] * len(wanted)), start),
        jnp.where(inside, X[None], 0),
        jnp.where(inside, Y[None], 0),
        step_size=jnp.asarray(step_size),
        steps=steps,
        record_at=record_at,
        X_test=X_test,
    )
