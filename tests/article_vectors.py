"""What the JavaScript of the article's moving figures must compute; see `explorer_vectors`."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from vector_cases import case, selection_problem


def article_cases() -> Iterator[dict[str, Any]]:
    """What the moving figures of the article on one token compute."""
    from attlas.data.token_selection import token_scores
    from attlas.losses.margin_loss import margin_loss
    from julistiono2024optimizing.library.token_selection.factored import train_factored
    from julistiono2024optimizing.library.token_selection.gradient import selection_loss
    from julistiono2024optimizing.library.token_selection.training import train_selection

    draw = np.random.default_rng(5)
    data, tokens = selection_problem(7, n=3, T=4, d=3)
    given = {"X": data.X, "y": data.y, "z": data.z, "v": data.v}
    at, start = [0, 1, 7, 30], 0.1 * draw.normal(size=(3, 3))
    plain = train_selection(
        data, jnp.asarray(start), p=1.5, learning_rate=0.3, steps=30, record_at=at, normalized=False
    )
    options = {"p": 1.5, "rate": 0.3, "recordAt": at, "plain": True}
    recorded = zip(plain.W, plain.loss, strict=True)
    expected = {"path": [{"W": W.ravel(), "loss": loss} for W, loss in recorded]}
    yield case("mirror_descent", "trainSelection", [given, start.ravel(), options], expected)
    K, Q = (jnp.asarray(0.2 * draw.normal(size=(3, 3))) for _ in range(2))
    pair = train_factored(data, K, Q, learning_rate=0.05, steps=30, record_at=at)
    expected = {"path": [{"step": k, "W": W.ravel()} for k, W in zip(at, pair.W, strict=True)]}
    factors = [K.ravel(), Q.ravel(), {"rate": 0.05, "recordAt": at}]
    yield case("factored", "trainFactored", [given, *factors], expected)
    lowest = margin_loss("logistic").value(token_scores(data).max(1)).mean()
    yield case("one_token", "lowestLoss", [given], lowest)
    for size in (0.5, 4.0):
        W = np.asarray(draw.normal(size=(3, 3)))
        excess = selection_loss(jnp.asarray(size * W), data) - lowest
        yield case("one_token", "excessLoss", [W.ravel(), size, given], excess)
        logits = np.einsum("itd,de,ie->it", data.X, W, data.z)
        shares = jax.nn.softmax(jnp.asarray(logits), axis=1)
        yield case("one_token", "attention", [W.ravel(), given, 1], shares[1])
        ahead = logits[np.arange(3), tokens][:, None] - logits
        ahead[np.arange(3), tokens] = np.inf
        lead, values = ahead.min(), np.linalg.svd(W, compute_uv=False)
        yield case("one_token", "smallestLead", [W.ravel(), given], lead)
        norms = {"nuclear": values.sum(), "euclidean": np.linalg.norm(W)}
        expected = {name: lead / norm for name, norm in norms.items()}
        expected["spread"] = norms["nuclear"] / norms["euclidean"]
        yield case("one_token", "margins", [W.ravel(), given], expected)
        sizes = np.sort(np.abs(W).ravel())[::-1]
        held = int(np.sum(np.cumsum(sizes) < 0.7 * sizes.sum())) + 1
        yield case("one_token", "entriesWith", [0.7, W.ravel()], held)
    yield case("one_token", "leastShare", [1.7, 4], jax.nn.softmax(jnp.array([1.7, 0, 0, 0]))[0])
