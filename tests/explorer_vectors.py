"""What the explorer's JavaScript must compute, made by `python tests/explorer_vectors.py`.

A case names a function of a module, its arguments and the numbers that the library gives. The
file `reports/explorer/vectors.json` holds them, so that JavaScript can be held to the library
where Python is not at hand; a test computes them again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

FILE = Path(__file__).parent / "reports" / "explorer" / "vectors.json"
EXPONENTS = (1.1, 1.5, 2.0, 3.0, 4.5)


def case(module: str, function: str, arguments: list, expected: Any) -> dict[str, Any]:
    """One call and what it gives; of an object, the entries that are compared."""
    return {
        "module": module,
        "function": function,
        "arguments": _plain(arguments),
        "expected": _plain(expected),
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


def selection_cases() -> Iterator[dict[str, Any]]:
    """Mirror descent and the attention SVM."""
    from attlas.core.norms.entrywise import entrywise_norm
    from attlas.data.token_selection import token_scores
    from attlas.losses.margin_loss import margin_loss
    from attlas.measures.attention.direction import direction_divergence
    from attlas.optim.mirror_descent import bregman, mirror_step
    from attlas.solvers.attention_svm import attention_rows, attention_svm
    from attlas.solvers.certificate import certify, distance_bound
    from attlas.tasks.token_selection.gradient import scaled_gradient, selection_loss
    from attlas.tasks.token_selection.training import train_selection

    draw = np.random.default_rng(1)
    for seed, p in enumerate(EXPONENTS):
        data, tokens = selection_problem(seed)
        given = {"X": data.X, "y": data.y, "z": data.z, "v": data.v}
        W, V, g = (jnp.asarray(draw.normal(size=(2, 2))) for _ in range(3))
        flat = [each.ravel() for each in (W, V, g)]
        yield case("numbers", "entrywiseNorm", [flat[0], p], entrywise_norm(W, p))
        step = mirror_step(W, g, 0.3, p).ravel()
        yield case("mirror_descent", "mirrorStep", [flat[0], flat[2], 0.3, p], step)
        yield case("mirror_descent", "bregman", [*flat[:2], p], bregman(W, V, p))
        near = [flat[0], flat[0] * (1 + 1e-5), p]
        yield case("mirror_descent", "bregman", near, bregman(W, W * (1 + 1e-5), p))
        far = direction_divergence(W, V, p)
        yield case("mirror_descent", "directionDivergence", [*flat[:2], p], far)
        yield case("mirror_descent", "tokenScores", [given], token_scores(data))
        for size in (1.0, 300.0):
            parts = (size * W, data.X, data.z, token_scores(data), margin_loss("logistic"))
            G, scale = scaled_gradient(*parts)
            loss = selection_loss(size * W, data)
            expected = {"G": G.ravel(), "logScale": scale, "loss": loss}
            yield case("mirror_descent", "scaledGradient", [size * flat[0], given], expected)
        at = [0, 1, 5, 20]
        path = train_selection(data, 0.1 * W, p=p, learning_rate=0.1, steps=20, record_at=at)
        expected = {
            "path": [
                {"step": step, "W": W.ravel(), "loss": loss}
                for step, W, loss in zip(at, path.W, path.loss, strict=True)
            ]
        }
        options = {"p": p, "rate": 0.1, "recordAt": at}
        yield case("mirror_descent", "trainSelection", [given, 0.1 * flat[0], options], expected)
        arrays = [np.asarray(each)[None] for each in (data.X, data.z, tokens)]
        rows = attention_rows(*arrays)
        dense = np.stack([rows.adjoint(unit[None])[0] for unit in np.eye(rows.shape[1])])
        yield case("attention_svm", "attentionRows", [data.X, data.z, tokens], {"rows": dense})
        found = attention_svm(data.X, data.z, tokens, p)
        w, l = draw.normal(size=4) * 0.01 + np.asarray(found.value).ravel(), draw.random(6)
        sides = certify(rows, w[None], l[None], p)
        expected = {
            "W": sides.w[0], "upper": sides.upper[0], "lower": sides.lower[0],
            "margins": sides.margins[0],
        }  # fmt: skip
        yield case("attention_svm", "certify", [dense, w, l, p], expected)
        bound = distance_bound(np.array([1.3]), np.array([1.2]), p)
        yield case("attention_svm", "distanceBound", [1.3, 1.2, p], bound[0])


def vectors() -> list[dict[str, Any]]:
    """All cases."""
    return [*selection_cases()]


if __name__ == "__main__":
    import os
    import sys

    if os.environ.get("JAX_ENABLE_X64") != "1":
        sys.exit("set JAX_ENABLE_X64=1: the vectors are float64")
    FILE.write_text(json.dumps(vectors(), separators=(",", ":")) + "\n", encoding="utf-8")
