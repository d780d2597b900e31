r"""Table 2, recurrent attention "the same as Luong et al. (2015)": formulas and contexts."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from liu2021analyzing.library.models.lstm_reader import LstmReader
from liu2021analyzing.library.models.luong_reader import LuongReader

_T, _P, _CELL, _UNITS = 2, 5, 2, 3
_STATE = 2 * _CELL
_SHAPES = {
    "W": (2, 4 * _CELL, _T), "U": (2, 4 * _CELL, _CELL), "b": (2, 4 * _CELL),
    "first": (_STATE, _UNITS), "second": (_UNITS, 1), "first_b": (_UNITS,), "second_b": (1,),
    "W_a": (_STATE, _STATE), "W_c": (_STATE, 2 * _STATE),
}  # fmt: skip
_ROUNDINGS = 256 * _P
"""Gates of a few products along the words, then a softmax and three layers."""


def _sizes(rng, count, shape):
    return 10 ** rng.uniform(-1, 0.5, (count, *(1 for _ in shape)))


def readers(rng, count):
    """Models from flat to hard attention, and texts of one to all words."""
    batch = {
        name: rng.normal(size=(count, *shape)) * _sizes(rng, count, shape)
        for name, shape in _SHAPES.items()
    }
    batch["W_a"] *= six_decades(rng, count, 0, 3)[:, None, None]
    words = rng.integers(1, _P + 1, count)
    return {
        **batch,
        "x": rng.normal(size=(count, _T, _P)) * 10 ** rng.uniform(-1, 0.5, (count, 1, 1)),
        "seen": np.arange(_P) < words[:, None],
    }


def _model(W, U, b, first, second, first_b, second_b, W_a, W_c):
    lstm = LstmReader(W, U, b, (first, second), (first_b, second_b))
    return LuongReader(lstm, W_a, W_c)


def _read(W, U, b, x, seen, places):
    """The states of one direction at all places, a word at a time."""
    cell, state, along = jnp.zeros(_CELL, x.dtype), jnp.zeros(_CELL, x.dtype), {}
    for s in places:
        enter, keep, new, leave = jnp.split(W @ x[:, s] + U @ state + b, 4)
        after = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        cell = jnp.where(seen[s], after, cell)
        state = jnp.where(seen[s], jax.nn.sigmoid(leave) * jnp.tanh(after), state)
        along[s] = state
    return state, along


def _states(W, U, b, x, seen):
    """The last states of both directions, and both at each place."""
    forth, there = _read(W[0], U[0], b[0], x, seen, range(_P))
    back, here = _read(W[1], U[1], b[1], x, seen, range(_P - 1, -1, -1))
    joined = jnp.stack([jnp.concatenate([there[s], here[s]]) for s in range(_P)])
    return jnp.concatenate([forth, back]), joined


@identity(
    "Table 2, recurrent attention with Luong's structure",
    Source.FOUND,
    sample=readers,
    status=Status.RECONSTRUCTED,
    count=32,
    roundings=_ROUNDINGS,
    controls=[
        Control("the dot score", general=False),
        Control("the context alone, without the last states", last=0.0),
        Control("weights on padding too", masked=False),
    ],
)
def table_2_luong(x, seen, *, general=True, last=1.0, masked=True, **weights):
    r"""$$a_s = \frac{e^{h^\top W_a h_s}}{\sum_r e^{h^\top W_a h_r}},\quad
    c = \sum_s a_s h_s,\quad \tilde h = \tanh(W_c [c; h]),\quad
    y = w_2^\top \phi(w_1^\top \tilde h)$$

    $h_s$ are the states of a bi-directional LSTM at the words, $h$ its last ones. The paper names
    Luong et al. (2015) and writes no formula; this is their global attention with the general
    score, in front of the network of the LSTM baseline. The model that is trained, against its
    formulas a word at a time.
    """
    model = _model(**weights)
    h, states = _states(weights["W"], weights["U"], weights["b"], x, seen)
    score = weights["W_a"] if general else jnp.eye(_STATE, dtype=x.dtype)
    energies = jnp.stack([h @ score @ state for state in states])
    # The largest of the words': that of padding may be so large that no power of a word is left.
    energies = jnp.where(seen, energies, -jnp.inf) if masked else energies
    powers = jnp.exp(energies - jnp.max(energies))
    context = sum(power * state for power, state in zip(powers, states, strict=True))
    z = jnp.tanh(weights["W_c"] @ jnp.concatenate([context / jnp.sum(powers), last * h]))
    hidden = jnp.maximum(z @ weights["first"] + weights["first_b"], 0)
    right = (hidden @ weights["second"] + weights["second_b"])[0]
    layers = (1 + jnp.linalg.norm(weights["first"])) * (1 + jnp.linalg.norm(weights["second"]))
    biases = 1 + jnp.linalg.norm(weights["first_b"]) + jnp.abs(weights["second_b"][0])
    steep = (1 + jnp.linalg.norm(weights["W_a"])) * (1 + jnp.linalg.norm(weights["W_c"]))
    return Sides(model(x, seen), right, magnitude=layers * biases * steep)


@inequality(
    "Table 2, contexts of Luong's attention",
    sample=readers,
    search_over=("W", "U", "b", "W_a", "x"),
    status=Status.NEW,
    count=64,
    roundings=_ROUNDINGS,
    controls=[Control("the mean norm of the states", mean=True)],
)
def table_2_contexts(x, seen, *, mean=False, **weights):
    r"""$$\|c\|_2 \le \max_s \|h_s\|_2$$

    As in theorem-6-contexts a context is a mean, here of states, whose entries are below 1: with
    LSTMs of size $q$ the root of $2q$ stands for $\sqrt t\, C_x$, whatever the words are. It is
    reached by hard attention to the longest state, or by a text of one word.
    """
    weights_of_words = _model(**weights).attention(x, seen)[0]
    _, states = _states(weights["W"], weights["U"], weights["b"], x, seen)
    sizes = jnp.linalg.norm(states, axis=1)
    number = jnp.sum(jnp.where(seen, 1.0, 0.0))
    average = jnp.sum(jnp.where(seen, sizes, 0.0)) / number
    largest = average if mean else jnp.max(jnp.where(seen, sizes, 0.0))
    left = jnp.linalg.norm(weights_of_words @ states)
    return Sides(left, largest, magnitude=jnp.ones_like(largest))
