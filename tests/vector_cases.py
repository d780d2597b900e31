"""What the vectors of the explorer and of the article's figures are made of."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def case(
    module: str, function: str, arguments: list, expected: Any, accuracy: float = 1e-12
) -> dict[str, Any]:
    """One call and what it gives, to an accuracy; of an object, the entries that are compared."""
    return {
        "module": module,
        "function": function,
        "arguments": _plain(arguments),
        "expected": _plain(expected),
        "accuracy": accuracy,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str | bool):
        return value
    return np.asarray(value).tolist()


def selection_problem(seed: int, n: int = 2, T: int = 4, d: int = 2):
    """Tokens, labels, queries and a value head, and the tokens of largest score."""
    from attlas.data.token_selection import TokenSelection, optimal_tokens

    draw = np.random.default_rng(seed)
    shapes = ((n, T, d), (n, d), (d,))
    X, z, v = (jnp.asarray(draw.uniform(-1.5, 1.5, shape)) for shape in shapes)
    y = jnp.asarray(np.where(np.arange(n) % 2, -1.0, 1.0))
    data = TokenSelection(X, y, z, v)
    return data, optimal_tokens(data)
