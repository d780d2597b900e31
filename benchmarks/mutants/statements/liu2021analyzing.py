"""Mutants of formulas that stand in claim files alone: each is a stronger statement."""

from functools import partial

from benchmarks.mutants.mutant import statement

_changed = partial(statement, "liu2021analyzing")

MUTANTS = [
    *_changed(
        "appendix_c_1",
        "Appendix C.1, sharpened",
        "appendix-c-1-sharp",
        {
            "half the logarithm": (
                "one + jnp.log(p), size",
                "one + jnp.log(p) / 2, size",
            ),
        },
    ),
    *_changed(
        "feature_norms",
        "f_sub, corrected",
        "erratum-2-corrected",
        {
            "1 in place of 2": (
                "2 * tau - tau**2",
                "tau - tau**2",
            ),
        },
    ),
    *_changed(
        "concentration",
        "(A2) and (A4), for softmax",
        "assumption-a2",
        {
            "root without the square": (
                "1 / jnp.sqrt(1 + others * lead**2)",
                "1 / jnp.sqrt(1 + others * lead**4)",
            ),
            "lead squared": (
                "1 / (1 + others * lead),",
                "1 / (1 + others * lead**2),",
            ),
        },
    ),
    *_changed(
        "feature_norms",
        "before (14)",
        "theorem-1-features",
        {
            "least entry of x": (
                "return jnp.linalg.norm(W) * jnp.max(jnp.abs(x))",
                "return jnp.linalg.norm(W) * jnp.min(jnp.abs(x))",
            ),
            "norm of W over the root of its rows": (
                "return jnp.linalg.norm(W) * jnp.max",
                "return jnp.linalg.norm(W) / W.shape[0] ** 0.5 * jnp.max",
            ),
        },
    ),
    *_changed(
        "lemma_1_1",
        "Lemma 1.1",
        "lemma-1-1",
        {
            "gradient to the fourth power": (
                "right = norm**2 / spectrum[eigenvalue]",
                "right = norm**4 / spectrum[eigenvalue]",
            ),
            "eigenvalue dropped": (
                "right = norm**2 / spectrum[eigenvalue] +",
                "right = norm**2 * spectrum[eigenvalue] +",
            ),
            "residual dropped": (
                "jnp.linalg.norm(ws) ** 2 * largest(V)",
                "0 * largest(V)",
            ),
        },
    ),
    *_changed(
        "lemma_1_2",
        "Lemma 1.2, features",
        "lemma-1-2-features",
        {
            "s_0 dropped": (
                "s_0**0.5 * norm(W)",
                "norm(W)",
            ),
        },
    ),
    *_changed(
        "lemma_1_2",
        "Lemma 1.2, v = u Phi",
        "lemma-1-2-term",
        {
            "s_0 dropped in v": (
                "factor * _S0 * C_1**2 * C_2 * C_x**2",
                "factor * C_1**2 * C_2 * C_x**2",
            ),
            "C_1 once": (
                "factor * _S0 * C_1**2 * C_2 * C_x**2",
                "factor * _S0 * C_1 * C_2 * C_x**2",
            ),
            "C_x once": (
                "factor * _S0 * C_1**2 * C_2 * C_x**2",
                "factor * _S0 * C_1**2 * C_2 * C_x",
            ),
            "C_2 dropped": (
                "factor * _S0 * C_1**2 * C_2 * C_x**2",
                "factor * _S0 * C_1**2 * C_x**2",
            ),
        },
    ),
    *_changed(
        "lemma_1_2",
        "Lemma 1.2, between points of the cover",
        "lemma-1-2-lipschitz",
        {
            "1 + 3K to K/5": (
                "(1.0 + 3.0 * K) * size * rho",
                "0.2 * K * size * rho",
            ),
        },
    ),
    *_changed(
        "lemma_1_2",
        "Lemma 1.2, Hoeffding",
        "lemma-1-2-concentration",
        {
            "factor 2 dropped": (
                "2 * jnp.exp(-rate * levels)",
                "jnp.exp(-rate * levels)",
            ),
            "2 n in place of n": (
                "jnp.append(_SAMPLES * t**2 / largest, 1.0)",
                "jnp.append(2 * _SAMPLES * t**2 / largest, 1.0)",
            ),
        },
    ),
    *_changed(
        "lemma_1_2",
        "Lemma 1.2, cover",
        "lemma-1-2-cover",
        {
            "2 R / epsilon to R / (2 epsilon)": (
                "else 1 + 2 * ratio / (1 - _EQUAL)) ** d",
                "else 1 + ratio / (1 - _EQUAL) / 2) ** d",
            ),
        },
    ),
    *_changed(
        "lemma_1_3",
        "Lemma 1.3",
        "lemma-1-3",
        {
            "largest eigenvalue dropped": (
                "* tau) + 2 * jnp.linalg.eigvalsh(G)[-1] * tau",
                "* tau)",
            ),
            "Frobenius term dropped": (
                "more = square * 2 * jnp.sqrt(jnp.sum(G**2) * tau) + 2",
                "more = 2",
            ),
            "trace dropped": (
                "bound = jnp.trace(G) + deviation",
                "bound = deviation",
            ),
        },
    ),
    *_changed(
        "theorem_5",
        "Proof of Theorem 5",
        "theorem-5-eigenvalue",
        {
            "1/alpha": (
                "Sides(delta / alpha**2, top(H_alpha)",
                "Sides(delta / alpha, top(H_alpha)",
            ),
        },
    ),
    *_changed(
        "theorem_5",
        "Appendix C.2, balls",
        "theorem-5-balls",
        {
            "C_2 dropped": (
                "bound = (C_2**2 + with_first * C_1**2)",
                "bound = (with_first * C_1**2)",
            ),
            "largest entry of v": (
                "jnp.mean(jnp.sum(v**2, axis=1))\n",
                "jnp.mean(jnp.max(v**2, axis=1))\n",
            ),
        },
    ),
    *_changed(
        "theorem_5",
        "Theorem 5 with softplus",
        "theorem-5-softplus-extent",
        {
            "log 2 to 1/2": (
                "bound = math.log(2) * jnp.sum",
                "bound = 0.5 * jnp.sum",
            ),
            "l_2 norm of w_2": (
                "jnp.sum(jnp.abs(w2)) / (jnp.asarray",
                "jnp.sqrt(jnp.sum(w2**2)) / (jnp.asarray",
            ),
        },
    ),
    *_changed(
        "theorem_7",
        "Theorem 7, with numbers",
        "theorem-7-quantitative",
        {
            "n dropped": (
                "right = _SAMPLES * jnp.linalg.norm(slope) / sigma",
                "right = jnp.linalg.norm(slope) / sigma",
            ),
            "sigma dropped": (
                "right = _SAMPLES * jnp.linalg.norm(slope) / sigma",
                "right = _SAMPLES * jnp.linalg.norm(slope)",
            ),
        },
    ),
    *_changed(
        "theorem_2",
        "features, corrected",
        "theorem-2-features",
        {
            "words dropped": (
                "np.sqrt(words) * size * by_values",
                "size * by_values",
            ),
            "d_v dropped": (
                "jnp.stack([np.sqrt(_V) * row_sum(W_V)",
                "jnp.stack([row_sum(W_V)",
            ),
            "t dropped": (
                "np.sqrt(_T) * jnp.linalg.norm(W_V)]",
                "jnp.linalg.norm(W_V)]",
            ),
        },
    ),
    *_changed(
        "theorem_2",
        "softmax is Lipschitz",
        "theorem-2-softmax",
        {
            "1/sqrt(2) to 1/2": (
                "jnp.asarray([1.0, 1 / np.sqrt(2)])",
                "jnp.asarray([1.0, 1 / 2])",
            ),
        },
    ),
    *_changed(
        "theorem_2",
        "attention between points of the cover",
        "theorem-2-moves",
        {
            "d_q to the first power": (
                "distance * t * C_x**2 / math.sqrt(_Q)",
                "distance * t * C_x**2 / _Q",
            ),
            "t dropped": (
                "distance * t * C_x**2 / math.sqrt(_Q)",
                "distance * C_x**2 / math.sqrt(_Q)",
            ),
            "values without p t": (
                "length = norm(W_V) * C_x * math.sqrt(_MOVE_P * t)",
                "length = norm(W_V) * C_x",
            ),
        },
    ),
    *_changed(
        "theorem_3_trained",
        "basic inequality",
        "basic-inequality",
        {
            "4r to r": (
                "jnp.sqrt(b**2 + 4 * part * r * (b + 4 * noise))",
                "jnp.sqrt(b**2 + part * r * (b + 4 * noise))",
            ),
            "noise dropped": (
                "jnp.sqrt(b**2 + 4 * part * r * (b + 4 * noise))",
                "jnp.sqrt(b**2 + 4 * part * r * b)",
            ),
        },
    ),
    *_changed(
        "theorem_4",
        "Proof of Theorem 4",
        "theorem-4-construction",
        {
            "power s0 - 1": (
                "(jnp.floor(n1 / s0) + more) ** s0",
                "(jnp.floor(n1 / s0) + more) ** (s0 - 1)",
            ),
        },
    ),
]
