"""What the explorer's JavaScript must compute, made by `python tests/explorer_vectors.py`.

A case names a function of a module, its arguments and the numbers that the library gives. The
file `site/explorer/vectors.json` holds them, so that JavaScript can be held to the library
where Python is not at hand; a test computes them again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from article_vectors import article_cases
from vector_cases import case, selection_problem

from attlas.solvers._methods.attention_problem import attention_rows

FILE = Path(__file__).parent / "site" / "explorer" / "vectors.json"
EXPONENTS = (1.1, 1.5, 2.0, 3.0, 4.5)


def selection_cases() -> Iterator[dict[str, Any]]:
    """Mirror descent and the attention SVM."""
    from attlas.data.token_selection import token_scores
    from attlas.losses.margin_loss import margin_loss
    from attlas.measures.attention.direction import direction_divergence
    from attlas.norms.entrywise import entrywise_norm
    from attlas.optim.mirror_descent import bregman, mirror_step
    from attlas.solvers._methods.certificate import certify, distance_bound
    from attlas.solvers.attention_svm import attention_svm
    from julistiono2024optimizing.library.token_selection.gradient import (
        scaled_gradient,
        selection_loss,
    )
    from julistiono2024optimizing.library.token_selection.training import train_selection

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


def random_head(seed: int, n: int, d: int) -> dict[str, Any]:
    """Tokens and matrices of one head, as the page's modules take them."""
    draw = np.random.default_rng(seed)
    matrices = {name: draw.normal(size=(d, d)) / d**0.5 for name in ("WQ", "WK", "WV")}
    return {
        "n": n, "d": d, "s": 0.7, "X": draw.normal(size=(n, d)), "bQ": draw.normal(size=d),
        **matrices,
    }  # fmt: skip


def _flat(head: dict[str, Any]) -> dict[str, Any]:
    return {name: np.ravel(each) if np.ndim(each) else each for name, each in head.items()}


def head_output(head: dict[str, Any], X: Any) -> Any:
    """P(X) X W_V."""
    logits = head["s"] * (X @ head["WQ"] + head["bQ"][None]) @ (X @ head["WK"]).T
    return jax.nn.softmax(logits, axis=-1) @ (X @ head["WV"])


def certificate_parts(head: dict[str, Any], P: Any, q: Any, k: Any, v: Any) -> dict[str, Any]:
    """The three parts of `local_lipschitz` by singular values, without rounding up."""

    def covariance(row: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (row[:, None] * (x - row @ x)).T @ (y - row @ y)

    spread = [np.linalg.norm(covariance(row, v, v), 2) for row in P]
    asking = [np.linalg.norm(covariance(row, v, k) @ head["WQ"].T, 2) for row in P]
    u = q @ head["WK"].T
    asked = [np.linalg.norm(np.einsum("i,ia,ib", spread * column, u, u), 2) for column in P.T]
    s = head["s"]
    read = np.linalg.norm(head["WV"], 2) * np.linalg.norm(P, 2)
    return {"read": read, "asking": s * max(asking), "asked": s * max(asked) ** 0.5}


def head_cases() -> Iterator[dict[str, Any]]:
    """Maps, concentration, floors and Lipschitz constants."""
    from attlas.bounds.attention.ball_lipschitz import ball_lipschitz, castin2024_lipschitz
    from attlas.bounds.attention.entropy_floor import entropy_floor, range_entropy_floor
    from attlas.bounds.attention.largest_logit import largest_logit
    from attlas.bounds.attention.local_lipschitz import local_lipschitz
    from attlas.bounds.attention.sink_gain import sink_gain
    from attlas.measures.attention.concentration import concentration

    pairs = [(size, T) for T in (2.0, 7.0, 64.0) for size in (0.0, 3e-5, 0.4, 2.0, 9.0)]
    both = [jnp.asarray(each) for each in zip(*pairs, strict=True)]
    floors = zip(pairs, entropy_floor(*both), range_entropy_floor(*both), strict=True)
    for pair, floor, ranged in floors:
        yield case("attention_head", "entropyFloor", list(pair), floor)
        yield case("attention_head", "rangeEntropyFloor", list(pair), ranged)
    norms = [1.3, 0.4, 2.5, 12]
    yield case("attention_head", "largestLogit", [0.4, 2.5, 0.3], largest_logit(0.4, 2.5, 0.3))
    yield case("attention_head", "sinkGain", [0.4, 12], sink_gain(0.4, 12))
    yield case("lipschitz", "ballLipschitz", [*norms, 0.3], ball_lipschitz(*norms, 0.3))
    yield case("lipschitz", "castinLipschitz", norms, castin2024_lipschitz(*norms))
    draw = np.random.default_rng(2)
    for row in draw.dirichlet(np.full(9, 0.4), 4):
        found = concentration(row[None])
        expected = {
            "s0": found.s0[0, 0], "entropy": found.entropy[0],
            "effectiveSupport": found.effective_support[0], "participation": found.participation[0],
        }  # fmt: skip
        yield case("attention_head", "concentration", [row], expected)
    for k, (r, c) in enumerate([(3, 3), (5, 2), (2, 6)]):
        M = np.random.default_rng(k).normal(size=(r, c))
        yield case("symmetric", "spectralNorm", [M.ravel(), r, c], np.linalg.norm(M, 2))
    for seed, (n, d) in enumerate([(5, 3)]):
        head, u = random_head(seed, n, d), draw.normal(size=(n, d))
        X, WQ, WK, WV = (head[name] for name in ("X", "WQ", "WK", "WV"))
        q, k, v = X @ WQ + head["bQ"], X @ WK, X @ WV
        P = jax.nn.softmax(jnp.asarray(head["s"] * q @ k.T), axis=-1)
        state = {"queries": q.ravel(), "keys": k.ravel(), "values": v.ravel(), "P": P.ravel()}
        yield case("attention_head", "headState", [_flat(head)], state)
        J = jax.jit(jax.jacobian(lambda X, head=head: head_output(head, X)))(jnp.asarray(X))
        yield case("lipschitz", "headJacobian", [_flat(head)], J.reshape(n * d, n * d).ravel())
        J = np.asarray(J).reshape(n * d, n * d)
        gain = np.linalg.norm(J @ u.ravel())
        yield case("lipschitz", "gainAt", [_flat(head), X.ravel(), u.ravel()], gain)
        # the direction converges like the square root of what its gain does
        _, sizes, right = np.linalg.svd(J)
        steps = [J.ravel(), n * d, 2000, u.ravel()]
        found = {"gain": sizes[0], "u": right[0] * np.sign(right[0] @ u.ravel())}
        yield case("lipschitz", "localAttack", steps, found)
        yield from attack_cases(head, n, d)
        expected = certificate_parts(head, np.asarray(P), q, k, v)
        parts = local_lipschitz(P, q, k, v, WQ, WK, WV, np.eye(d), head["s"])
        fields = {"read": "by_values", "asking": "by_queries", "asked": "by_keys"}
        for name, value in expected.items():
            # the library adds what its own rounding may hide
            part = float(getattr(parts, fields.get(name, name)))
            assert value * (1 - 1e-12) <= part <= value * (1 + 1e-10)
        yield case("lipschitz", "localLipschitz", [_flat(head)], expected)


def attack_cases(head: dict[str, Any], n: int, d: int) -> Iterator[dict[str, Any]]:
    """A step of the search in the ball, with the gradient that the page takes by differences."""
    size, radius = n * d, 1.1 * float(np.linalg.norm(head["X"], axis=1).max())
    jacobian = jax.jit(jax.jacobian(lambda X: head_output(head, X).ravel()))
    u = 1 + (np.arange(size) * 0.618034) % 1
    J = np.asarray(jacobian(jnp.asarray(head["X"]))).reshape(size, size)
    for _ in range(12):
        u = J.T @ (J @ (u / np.linalg.norm(u)))
    u = jnp.asarray(u / np.linalg.norm(u))

    def gain(X: Any) -> Any:
        return jnp.linalg.norm(jacobian(X).reshape(size, size) @ u)

    along = np.asarray(jax.jit(jax.grad(gain))(jnp.asarray(head["X"])))
    moved = head["X"] + 0.3 * radius * along / np.linalg.norm(along, axis=1).max()
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    expected = {
        "X": (moved * np.minimum(1, radius / lengths)).ravel(),
        "best": np.linalg.norm(J @ u),
    }
    given = [_flat(head) | {"radius": radius}, {"X": head["X"].ravel(), "best": 0}, 0.3]
    yield case("lipschitz", "ballAttackStep", given, expected, accuracy=1e-8)


def layer_of(weights: Any, inputs: Any) -> dict[str, Any]:
    """The class of a layer whose heads are alike, as the page's modules take it."""
    from attlas.bounds.comparison.compare_inputs import measure_inputs
    from attlas.bounds.comparison.weight_norms import weight_norms

    norms = weight_norms(weights)
    head, readout = norms.layers[0][0], norms.readout.total
    tokens = measure_inputs(inputs, head.query_key.rows, None)
    key = head.query_key
    return {
        "heads": len(norms.layers[0]), "d": key.rows, "T": tokens.T, "rank": key.rank,
        "lipschitz": 1.0, "outer": readout * head.output.row * head.value.row,
        "readout": readout, "output": head.output.row, "value": head.value.row,
        "norms": {"total": key.total, "column": key.column, "rowSum": key.row_sum,
                  "columnSum": key.column_sum, "spectral": key.spectral},
        "tokens": {"two": tokens.l2, "one": tokens.l1, "largest": tokens.largest},
    }  # fmt: skip


def bound_cases() -> Iterator[dict[str, Any]]:
    """Covers, chains and grids."""
    from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
    from attlas.bounds.covering.norm_grid import norm_grid_cost, round_up_norm
    from attlas.bounds.covering.parameter_counting import (
        parameter_counting_single,
        parameter_entropy,
    )
    from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
    from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
    from attlas.bounds.generalisation.trauger2023_single import trauger2023_single

    for ball in ("1,1", "1,inf", "2,1"):
        C = trauger2023_cover(ball, 1.7, 1.2, 8, 8, 5e4)
        yield case("bounds", "ballCover", [ball, 1.7, 1.2, 8, 8, 5e4], C)
    for points, k in ((100, 1), (1e6, 8)):
        arguments = [1.7, 1.2, points, k, 5e4]
        yield case("bounds", "edelmanCover", arguments, edelman2022_cover(*arguments))
    for m in (50.0, 1e4, 1e8):
        bound = trauger2023_single(0.6, 3.0, 1.2, 8, m, largest_entry=0.9)
        yield case("bounds", "singleLayer", [0.6, 3.0, 1.2, 8, m, 0.9], bound)
        for factored in (False, True):
            arguments = [0.6, 2.0, 1.2, 16, 8, m, factored]
            counted = parameter_counting_single(*arguments)
            yield case("bounds", "parameterCounting", arguments, counted)
    parameters, scales, beta = (jnp.array(a) for a in ([4.0, 9.0], [1.0, 50.0], [0.3, 2.0]))
    entropy = parameter_entropy(parameters, scales, beta, jnp.asarray(0.01))
    yield case("bounds", "parameterEntropy", [parameters, scales, beta, 0.01], entropy)
    for norm in (0.0, 1.0, 1.1, 2.0, 7.3, 1e-5):
        for resolution in (1, 7):
            raised = round_up_norm(np.array([norm]), resolution)[0]
            yield case("bounds", "roundUpNorm", [norm, resolution], raised)
            cost = norm_grid_cost(np.array([norm]), resolution)[0]
            yield case("bounds", "normGridCost", [norm, resolution], cost)
    gap = generalisation_gap(0.0, 400, 0.05, 2.0, union_cost=31.0)
    yield case("bounds", "tail", [400, 0.05, 2.0, 31.0], gap)


def comparison_cases() -> Iterator[dict[str, Any]]:
    """All bounds on one layer side by side."""
    from attlas.bounds.comparison.compare import compare_bounds
    from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights

    draw = np.random.default_rng(3)
    one = Head(*(draw.normal(size=(3, 3)) / 9 for _ in range(3)))
    weights = TransformerWeights(((one, one),), draw.normal(size=3) / 3)
    inputs = draw.normal(size=(5, 4, 3)) / 2
    layer = layer_of(weights, inputs)
    names = ["trivial", *(f"{ball} sharp" for ball in ("1,1", "1,inf", "2,1"))]
    names += ["log T", "log m", "parameters"]
    page_names = [name.removesuffix(" sharp") for name in names]
    for m, norms in ((500, "fixed"), (500, "measured"), (10**7, "measured")):
        table = compare_bounds(weights, inputs, m, 0.05, model="plain", norms=norms)
        rows = {entry.name: entry for entry in table.entries}
        expected = [{"gap": rows[name].gap, "complexity": rows[name].complexity} for name in names]
        entries = sum(entry.is_bound for entry in table.entries)
        options = {"delta": 0.05, "fixed": norms == "fixed", "entries": entries}
        yield case("bounds", "compareBounds", [layer, m, options], expected)
        if m == 500:
            for row, name in zip(page_names, names, strict=True):
                least = float(rows[name].samples_until_nonvacuous)
                # an endless wait has no number in JSON
                least = least if np.isfinite(least) else "Infinity"
                yield case("bounds", "samplesUntilNonvacuous", [layer, row, options], least)


def mixture_cases() -> Iterator[dict[str, Any]]:
    """Samples of the mixture, the risk of multi-head attention, and training."""
    from attlas.models.attention.multi_head import MultiHead
    from attlas.optim.one_step import first_phase_steps, one_step_initialisation
    from attlas.site.explorer.draws import mixture, mixture_draws
    from attlas.training.gradient_descent import gradient_descent
    from attlas.training.risk_gradient import risk_gradient

    draws = mixture_draws()
    count, T, d = 4, int(draws["T"]), int(draws["d"])
    own = ("labels", "relevant", "pattern", "noise")
    cut = {"T": T, "d": d, "patterns": draws["patterns"].ravel()}
    cut |= {name: draws[name][:count].ravel() for name in own}
    _, samples = mixture(2.0, 3.0)
    X, y = samples.X[:count], samples.y[:count]
    given = {"X": X.ravel(), "y": y, "n": count, "T": T, "d": d}
    options = {"n": count, "S": 2.0, "Z": 3.0}
    expected = {"X": X.ravel(), "y": y}
    yield case("multi_head", "mixtureSamples", [cut, options], expected)
    key = jax.random.key(0)
    model = one_step_initialisation(key, X, y, 3)
    alphas = first_phase_steps(key, 3)
    start = {"U": model.U.ravel(), "W": model.W.ravel()}
    yield case("multi_head", "oneStepModel", [given, alphas], start)
    draw = np.random.default_rng(4)
    model = MultiHead(*(jnp.asarray(draw.normal(size=s)) / 4 for s in ((3, T, d), (3, d, d))))
    plain = {"H": 3, "T": T, "d": d, "U": model.U.ravel(), "W": model.W.ravel()}
    value, gradient = risk_gradient(model, X, y, jnp.ones(count), "logistic")
    expected = {"risk": value, "U": gradient.U.ravel(), "W": gradient.W.ravel()}
    yield case("multi_head", "riskGradient", [plain, given], expected)
    rows = jnp.asarray(draws["relevant"][:count], X.dtype)
    margins = y * jax.vmap(model)(X)
    mass = jax.vmap(lambda x, own: (model.attention(x) * own[None, None]).sum(-1).mean())(X, rows)
    expected = {"risk": value, "wrong": (margins <= 0).mean(), "mass": mass.mean()}
    known = given | {"relevant": rows.ravel()}
    yield case("multi_head", "evaluate", [plain, known], expected)
    path = gradient_descent(model, X, y, step_size=0.2, steps=5)
    last = path.params
    expected = {"U": last.U[-1].ravel(), "W": last.W[-1].ravel()}
    yield case("multi_head", "trained", [plain, given, 0.2, 5], expected)


def vectors() -> list[dict[str, Any]]:
    """All cases."""
    return [
        *selection_cases(),
        *head_cases(),
        *bound_cases(),
        *comparison_cases(),
        *mixture_cases(),
        *article_cases(),
    ]


if __name__ == "__main__":
    import os
    import sys

    if os.environ.get("JAX_ENABLE_X64") != "1":
        sys.exit("set JAX_ENABLE_X64=1: the vectors are float64")
    FILE.write_text(json.dumps(vectors(), separators=(",", ":")) + "\n", encoding="utf-8")
