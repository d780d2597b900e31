"""Mutants of formulas that stand in claim files alone: each is a stronger statement."""

from functools import partial

from benchmarks.mutants.mutant import statement

_changed = partial(statement, "julistiono2024optimizing")

MUTANTS = [
    *_changed(
        "lemma_12",
        "Lemma 12",
        "lemma-12",
        {
            "d^(1/p - 1/2)": ("** (2 / p - 1) * euclidean", "** (1 / p - 1 / 2) * euclidean"),
            "d^(2/p)": ("** (2 / p - 1) * euclidean", "** (2 / p) * euclidean"),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L1)",
        "lemma-13-l1",
        {
            "2^-p dropped": ("(W1 - W2, p) / base) ** p / p, W1", "(W1 - W2, p)) ** p / p, W1"),
            "power of p dropped": (
                "(W1 - W2, p) / base) ** p / p, W1",
                "(W1 - W2, p) / base) / p, W1",
            ),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L2)",
        "lemma-13-l2",
        {
            "1/p dropped": ("else (p - 1) ** 2 / p\n", "else (p - 1) ** 2\n"),
            "(p - 1)/p": ("else (p - 1) ** 2 / p\n", "else (p - 1) / p\n"),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L2), best constant",
        "lemma-13-frobenius",
        {
            "2^(1/p - 1)": (
                "whole else (p - 1) * 2 ** (2 / p - 2)",
                "whole else (p - 1) * 2 ** (1 / p - 1)",
            ),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L2), in the norm of p",
        "lemma-13-sphere",
        {
            "p in place of p - 1": (
                "factor * (p - 1) * entrywise_norm(W1 - W2, p)",
                "factor * p * entrywise_norm(W1 - W2, p)",
            ),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13, (11)",
        "lemma-13-scalar-l1",
        {
            "2^-p dropped in (11)": (
                "Sides(base**p * jnp.abs(x - y) ** p",
                "Sides(jnp.abs(x - y) ** p",
            ),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13, (11)",
        "lemma-13-scalar-l2",
        {
            "p - 1 in place of its square": ("else (p - 1) ** 2\n", "else p - 1\n"),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L1), best scalar constant",
        "lemma-13-scalar-sharp-above",
        {
            "p in place of p - 1 above": (
                "return (p - 1) / (1 + s) ** (p - 2)",
                "return p / (1 + s) ** (p - 2)",
            ),
            "(1 + s)^(p - 3)": (
                "return (p - 1) / (1 + s) ** (p - 2)",
                "return (p - 1) / (1 + s) ** (p - 3)",
            ),
        },
    ),
    *_changed(
        "lemma_13",
        "Lemma 13 (L2), best scalar constant",
        "lemma-13-scalar-sharp-below",
        {
            "p/2 dropped": (
                "factor * p * (p - 1) / 2 * jnp.square(x - y)",
                "factor * (p - 1) * jnp.square(x - y)",
            ),
        },
    ),
    *_changed(
        "lemma_16",
        "Lemma 16",
        "lemma-16",
        {
            "mean score in place of the largest": (
                "factor * jnp.max(jnp.abs(token_scores(data)), axis=1)",
                "factor * jnp.mean(jnp.abs(token_scores(data)), axis=1)",
            ),
        },
    ),
    *_changed(
        "lemma_18",
        "Lemma 18, sharpened",
        "lemma-18-sharp",
        {
            "mean token": (
                "* scores * jnp.max(tokens, axis=1)",
                "* scores * jnp.mean(tokens, axis=1)",
            ),
            "least steepness": (
                "steepest = jnp.max(-logistic_derivative(-scores))",
                "steepest = jnp.min(-logistic_derivative(scores))",
            ),
            "scores dropped": ("factor * scores * jnp.max(tokens", "factor * jnp.max(tokens"),
        },
    ),
    *_changed(
        "lemma_18",
        "Lemma 18, second sentence",
        "lemma-18-entries",
        {
            "mean entry": (
                "tokens = jnp.max(jnp.abs(X), axis=1)[:, :, None]",
                "tokens = jnp.mean(jnp.abs(X), axis=1)[:, :, None]",
            ),
            "least sample": (
                "jnp.max(size[:, None, None] * tokens, axis=0)",
                "jnp.min(size[:, None, None] * tokens, axis=0)",
            ),
        },
    ),
    *_changed(
        "lemma_19",
        "Lemma 19, proof",
        "lemma-19-hoelder",
        {
            "A in place of 2 A": (
                "else 2 * A * plain_norm(turn, p)",
                "else A * plain_norm(turn, p)",
            ),
        },
    ),
    *_changed(
        "lemma_19",
        "Lemma 19 (12c)",
        "lemma-19-12c",
        {
            "delta/2 to delta/64": (
                "jnp.abs(gap - 1))), delta / 2",
                "jnp.abs(gap - 1))), delta / 64",
            ),
        },
    ),
    *_changed(
        "lemma_20",
        "Lemma 20",
        "lemma-20",
        {
            "advantage dropped": (
                "3 * least_slope * advantage * (1 - delta / 2) / (4 * norm)",
                "3 * least_slope * (1 - delta / 2) / (4 * norm)",
            ),
            "norm dropped": (
                "3 * least_slope * advantage * (1 - delta / 2) / (4 * norm)",
                "3 * least_slope * advantage * (1 - delta / 2) / 4",
            ),
            "norm squared": (
                "3 * least_slope * advantage * (1 - delta / 2) / (4 * norm)",
                "3 * least_slope * advantage * (1 - delta / 2) / (4 * norm**2)",
            ),
            "slope dropped": (
                "3 * least_slope * advantage * (1 - delta / 2) / (4 * norm)",
                "3 * advantage * (1 - delta / 2) / (4 * norm)",
            ),
            "e^-||W||": (
                "exponent = (1 + delta / 2) * plain_norm(W, p) / norm",
                "exponent = (1 - delta / 2) * plain_norm(W, p) / norm",
            ),
        },
    ),
    *_changed(
        "lemma_20",
        "Lemma 20, proof",
        "lemma-20-softmax",
        {
            "rate 1 - delta/2": (
                "jnp.exp(jnp.min(pairs) + (1 + delta / 2) * rho)",
                "jnp.exp(jnp.min(pairs) + (1 - delta / 2) * rho)",
            ),
            "5/6 to 1.02": ("jnp.full_like(product, 5 / 6)", "jnp.full_like(product, 1.02)"),
            "5/6 to 30": ("jnp.full_like(product, 5 / 6)", "jnp.full_like(product, 30)"),
        },
    ),
    *_changed(
        "lemma_20",
        "Lemma 20, proof",
        "lemma-20-covariance",
        {
            "norm dropped before (16)": (
                "0.95 * advantage * (1 - delta / 2) / norm",
                "0.95 * advantage * (1 - delta / 2)",
            ),
            "1 + delta/2 before (16)": (
                "0.95 * advantage * (1 - delta / 2) / norm",
                "0.95 * advantage * (1 + delta) / norm",
            ),
        },
    ),
    *_changed(
        "lemma_24",
        "Lemma 24, smoothness of the risk",
        "smoothness",
        {
            "1/4 to 1/16": (
                "attention * steep * spread / 4 + bend",
                "attention * steep * spread / 16 + bend",
            ),
            "score range dropped": (
                "attention * steep * spread / 4 + bend",
                "attention * steep / 4 + bend",
            ),
            "least entry of the query": (
                "* jnp.sum(jnp.square(data.z), axis=1)\n    return jnp.mean(diameter",
                "* jnp.min(jnp.square(data.z), axis=1)\n    return jnp.mean(diameter",
            ),
            "least diameter": (
                "jnp.mean(diameter * (attention",
                "jnp.min(diameter) * jnp.mean((attention",
            ),
        },
    ),
    *_changed(
        "lemma_24",
        "Lemma 24, share of the divergence",
        "mirror-share",
        {
            "m - 1 to m - 1/2": ("else 1 / (2 * (m - 1))", "else 1 / (2 * (m - 1.5))"),
            "m = p": ("m = jnp.maximum(p, p / (p - 1))\n    product", "m = p\n    product"),
        },
    ),
    *_changed(
        "lemma_27",
        "Lemma 27 (25)",
        "lemma-27",
        {
            "-9 times the descent": (
                "else growth / (1 + pi)) + descent",
                "else growth / (1 + pi)) - 9 * descent",
            ),
        },
    ),
    *_changed(
        "lemma_28",
        "Lemma 28, proof (27)",
        "lemma-28-27",
        {
            "pi/(1 + pi) dropped": ("right = pi / (1 + pi) + (cone", "right = (cone"),
        },
    ),
    *_changed(
        "lemmas_14_15",
        "Lemma 14",
        "lemma-14",
        {
            "p in place of p/(p - 1)": ("else p / (p - 1)\n    middle", "else p\n    middle"),
        },
    ),
    *_changed(
        "lemmas_14_15",
        "Lemma 15",
        "lemma-15",
        {
            "p in place of p - 1": (
                "((p - 1) * base ** (p - 2) * (x - y)",
                "(p * base ** (p - 2) * (x - y)",
            ),
            "power p - 1": (
                "((p - 1) * base ** (p - 2) * (x - y)",
                "((p - 1) * base ** (p - 1) * (x - y)",
            ),
        },
    ),
    *_changed(
        "lemmas_22_23_26",
        "Lemma 22",
        "lemma-22",
        {
            "1/||W|| dropped": ("jnp.sum(-slope * W) / before)", "jnp.sum(-slope * W))"),
        },
    ),
    *_changed(
        "mirror_geometry",
        "Section 5, normalised steps",
        "normalised-growth",
        {
            "start dropped": ("right = norms[0] ** (p - 1) + share", "right = share"),
            "root of the steps": (
                "share * eta * steps**power",
                "share * eta * steps ** (power / 2)",
            ),
        },
    ),
    *_changed(
        "lag_and_memory",
        "the mirror variable of samples of two tokens",
        "mirror-span",
        {
            "4 in place of n": ("a = a + eta / samples * slope", "a = a + eta / 4 * slope"),
        },
    ),
    *_changed(
        "direction_metric",
        "lag and memory",
        "lag",
        {
            "no half in the lag": (
                "jnp.linalg.solve(gram, centred) / 2",
                "jnp.linalg.solve(gram, centred)",
            ),
            "plain mean of theta": (
                "theta - jnp.sum(jnp.where(there, share * theta, 0)), 0)",
                "theta - jnp.sum(jnp.where(there, theta, 0)) / jnp.sum(there), 0)",
            ),
        },
    ),
    *_changed(
        "direction_metric",
        "lag and memory",
        "memory",
        {
            "no half in the memory": (
                "jnp.sum(metric(W_mm, p) * U**2) / 2",
                "jnp.sum(metric(W_mm, p) * U**2)",
            ),
            "p in place of p - 1 in the metric": (
                "jnp.abs(W_mm) ** (2 - p) / (p - 1))",
                "jnp.abs(W_mm) ** (2 - p) / p)",
            ),
            "|W|^(1 - p) in the metric": (
                "jnp.abs(W_mm) ** (2 - p) / (p - 1))",
                "jnp.abs(W_mm) ** (1 - p) / (p - 1))",
            ),
        },
    ),
]
