"""Students of a self-attention teacher: with and without attention, by sample size and setting."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from liu2021analyzing.library.data.standardised_task import StandardisedTask, standardised_task
from liu2021analyzing.library.levenberg_marquardt import best_starts, levenberg_marquardt
from liu2021analyzing.library.models.gaussian_self_attention import (
    gaussian_self_attention,
    tempered_output,
)
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer


class Shape(NamedTuple):
    """Sizes of a network with self-attention.

    Attributes:
        p: words.
        d_q: entries of a query and a key.
        d_v: entries of a value.
        d: hidden units.
    """

    p: int
    t: int
    d_q: int
    d_v: int
    d: int


class Setting(NamedTuple):
    """Settings of a student; the plain one has the teacher's d_q and these defaults.

    Attributes:
        d_q: entries of a query and a key.
        temperature: temperature of its softmax.
        l1: factor of the l1 penalty on the values and both layers.
        l2: factor of half their squared norm.
    """

    d_q: int
    temperature: float = 1.0
    l1: float = 0.0
    l2: float = 0.0


def self_attention_task(
    seed: int, shape: Shape, n: int, fresh: int, noise: float, size: float
) -> StandardisedTask:
    """Samples of a Gaussian self-attention teacher, whose truth has deviation one.

    Args:
        fresh: inputs of the test.
        noise: deviation of the labels.
        size: standard deviation of the entries of its query and key matrices.

    Examples:
        >>> self_attention_task(0, Shape(3, 2, 2, 2, 3), 5, 100, 0.5, 1.0).x.shape
        (5, 2, 3)
    """
    rng = np.random.default_rng([seed, 11])
    teacher = jax.tree.map(lambda a: a[0], gaussian_self_attention(rng, 1, *shape, size=size))
    return standardised_task(rng, teacher, n, fresh, (shape.t, shape.p), noise)


def errors_by_size(
    task: StandardisedTask,
    shape: Shape,
    sizes: Sequence[int],
    units: int | None,
    seed: int,
    repeats: int,
    **effort: Any,
) -> Float[np.ndarray, " sizes"]:
    """Test errors of students trained on the first n samples.

    Args:
        shape: sizes of the teacher, and of students with self-attention.
        sizes: the numbers n, the last of them the number of samples.
        units: hidden units of students without attention, which read all words as one vector;
            None for students with self-attention.
        repeats: starts of each student, of which the best is taken.
        **effort: settings of `levenberg_marquardt`.

    Examples:
        >>> shape = Shape(3, 2, 2, 2, 3)
        >>> task = self_attention_task(0, shape, 16, 100, 0.5, 1.0)
        >>> errors_by_size(task, shape, [8, 16], None, 0, 1, max_steps=3).shape
        (2,)
    """
    rng, count = np.random.default_rng([seed, 12]), len(sizes) * repeats
    weights = (np.arange(sizes[-1]) < np.repeat(sizes, repeats)[:, None]).astype(float)
    options = {"repeats": repeats, "weights": weights, **effort}
    if units is None:
        starts = gaussian_self_attention(rng, count, *shape)
        return student_errors(task, SelfAttentionMLP.__call__, starts, **options)
    entries = shape.p * shape.t
    W1 = np.sqrt(3 / entries) * rng.standard_normal((count, entries, units))
    w2 = rng.standard_normal((count, units)) / np.sqrt(units)
    make = jax.vmap(lambda W1, w2, b2: TwoLayer(W1, w2, b2=b2))
    starts = make(*jax.device_put((W1, w2, np.zeros(count))))
    return student_errors(task, _on_all_words, starts, **options)


def errors_by_setting(
    task: StandardisedTask,
    shape: Shape,
    settings: Sequence[Setting],
    seed: int,
    repeats: int,
    **effort: Any,
) -> Float[np.ndarray, " settings"]:
    """Test errors of students with self-attention from the same starts, one for each setting.

    Those with the teacher's d_q share one program, and all others another one, in which query
    and key matrices have further rows of zeros.

    Args:
        settings: one setting per student.
        repeats: starts of each student, of which the best is taken.
        **effort: settings of `levenberg_marquardt`.

    Examples:
        >>> shape = Shape(3, 2, 2, 2, 3)
        >>> task = self_attention_task(0, shape, 16, 100, 0.5, 1.0)
        >>> errors_by_setting(task, shape, [Setting(2), Setting(1)], 0, 1, max_steps=3).shape
        (2,)
    """
    errors = np.empty(len(settings))
    for wide in (False, True):
        members = [k for k, setting in enumerate(settings) if (setting.d_q != shape.d_q) == wide]
        if not members:
            continue
        rows = max(settings[k].d_q for k in members)
        stacks, l1, l2, factors = [], [], [], []
        for setting in (settings[k] for k in members):
            rng = np.random.default_rng([seed, 13])  # the same starts for all
            sizes = shape._replace(d_q=setting.d_q)
            stacks.append(gaussian_self_attention(rng, repeats, *sizes, rows=rows))
            # Of W_Q, W_K, W_V, W1, w2 and b2 those in the middle have penalties.
            leaves = [leaf[0].size for leaf in jax.tree.leaves(stacks[-1])]
            on = np.repeat([0.0, 0.0, 1.0, 1.0, 1.0, 0.0], leaves)
            l1 += [setting.l1 * on] * repeats
            l2 += [setting.l2 * on] * repeats
            factors += [np.sqrt(rows / setting.d_q) / setting.temperature] * repeats
        starts = jax.tree.map(lambda *arrays: np.concatenate(arrays), *stacks)
        errors[members] = student_errors(
            task, tempered_output, starts, np.array(factors), l1=np.array(l1), l2=np.array(l2),
            repeats=repeats, **effort,
        )  # fmt: skip
    return errors


@eqx.filter_jit
def stacked_outputs(
    predict: Callable[..., Array], networks: Any, x: Float[Array, " n *shape"], *args: Any
) -> Float[Array, "networks n"]:
    """predict(network, x_i, *args) for each network and input, in one program.

    Args:
        predict: output of one network on one input.
        networks: networks, stacked along a leading axis.
        *args: further arguments of `predict`, with the leading axis of the networks.

    Examples:
        >>> import jax.numpy as jnp
        >>> w = jnp.array([[1.0], [2.0]])
        >>> stacked_outputs(lambda w, x: w @ x, w, jnp.array([[3.0], [5.0], [7.0]])).tolist()
        [[3.0, 5.0, 7.0], [6.0, 10.0, 14.0]]
    """

    def outputs_of(network: Any, *arguments: Any) -> Array:
        return jax.vmap(lambda sample: predict(network, sample, *arguments))(x)

    return jax.vmap(outputs_of)(networks, *args)


def student_errors(
    task: StandardisedTask,
    predict: Callable[..., Array],
    starts: Any,
    *args: Any,
    repeats: int,
    **settings: Any,
) -> Float[np.ndarray, " students"]:
    r"""Mean square distance from the truth over fresh inputs, at the end of least training risk.

    Args:
        predict: output predict(network, x, *args) of one network on one input.
        starts: networks with a leading axis: each student's starts stand together.
        *args: further arguments of `predict`, with the same leading axis.
        repeats: starts of each student.
        **settings: settings of `levenberg_marquardt`: penalties, sample weights, steps.

    Examples:
        >>> x, y = np.array([[1.0], [2.0]]), np.array([3.0, 6.0])
        >>> task = StandardisedTask(x, y, np.array([[1.0]]), np.array([2.0]))
        >>> student_errors(task, lambda w, x: w @ x, np.ones((2, 1)), repeats=2).round(6).tolist()
        [1.0]
    """
    count = jax.tree.leaves(starts)[0].shape[0]
    x, y = (np.repeat(a[None], count, axis=0) for a in (task.x, task.y))
    ends = levenberg_marquardt(predict, starts, x, y, *args, **settings)
    best, best_args = best_starts(ends, repeats).value, [a[::repeats] for a in args]
    outputs = stacked_outputs(predict, *jax.device_put((best, task.fresh, *best_args)))
    return np.mean((np.asarray(outputs) - task.truth) ** 2, axis=1)


def _on_all_words(network: TwoLayer, x: Float[Array, "t p"]) -> Float[Array, ""]:
    """The output of a network that reads all words, the columns of x, as one vector."""
    return network(x.T.reshape(-1))
