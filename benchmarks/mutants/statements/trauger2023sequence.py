"""Mutants of formulas that stand in claim files alone: each is a stronger statement."""

from functools import partial

from benchmarks.mutants.mutant import statement

_changed = partial(statement, "trauger2023sequence")

MUTANTS = [
    *_changed(
        "appendix_c",
        "Appendix C, both signs",
        "appendix-c-union",
        {
            "1.5 in place of 2": (
                "return Sides(symmetrised, 2 * exact_complexity(F)",
                "return Sides(symmetrised, 1.5 * exact_complexity(F)",
            ),
        },
    ),
    *_changed(
        "appendix_c",
        "Appendix C, contraction",
        "appendix-c-contraction",
        {
            "L dropped": (
                "factor * L * exact_complexity(F), magnitude",
                "factor * jnp.minimum(L, 1) * exact_complexity(F), magnitude",
            ),
        },
    ),
    *_changed(
        "appendix_c",
        "Appendix C, one hidden unit",
        "appendix-c-unit",
        {
            "l_2 norm of w": (
                "norms = jnp.sum(jnp.abs(w)) * jnp.max",
                "norms = jnp.sqrt(jnp.sum(w**2)) * jnp.max",
            ),
            "largest entry of W_c": (
                "jnp.max(jnp.sum(jnp.abs(W_c), axis=axis))",
                "jnp.max(jnp.abs(W_c))",
            ),
        },
    ),
    *_changed(
        "appendix_c",
        "Appendix C, the cover",
        "appendix-c-cover",
        {
            "B_x to the first power": (
                "right = kappa * B_x**power *",
                "right = kappa * B_x *",
            ),
        },
    ),
    *_changed(
        "appendix_c",
        "Lemma C.1, best bound",
        "lemma-c-1-exact",
        {
            "delta/4": (
                "factor * jnp.tanh(delta / 2)",
                "factor * jnp.tanh(delta / 4)",
            ),
        },
    ),
    *_changed(
        "appendix_g",
        "Appendix G, the gradient",
        "appendix-g-gradient",
        {
            "1 in place of 2": (
                "jnp.stack([2 * wrong, -wrong, wrong])",
                "jnp.stack([wrong, -wrong, wrong])",
            ),
            "sign of the first entry": (
                "jnp.stack([2 * wrong, -wrong, wrong])",
                "jnp.stack([2 * wrong, wrong, wrong])",
            ),
        },
    ),
    *_changed(
        "appendix_g",
        "Section 5, clipped cross-entropy",
        "section-5-clipped",
        {
            "half the Lipschitz constant": (
                "right = jnp.stack([constant * bound, below",
                "right = jnp.stack([constant * bound / 2, below",
            ),
            "half the ceiling": (
                "constant * bound, below * ceiling,",
                "constant * bound, below * ceiling / 2,",
            ),
        },
    ),
    *_changed(
        "theorem_4_2",
        "Theorem 4.2, recursion",
        "theorem-4-2-parts",
        {
            "values without B_c": (
                "jnp.cbrt(C * (cost * outer) ** 2)\n        keys",
                "jnp.cbrt(C * cost**2)\n        keys",
            ),
            "keys without B_v": (
                "(kappa * cost * outer * B_v) ** 2",
                "(kappa * cost * outer) ** 2",
            ),
            "2 kappa to kappa": (
                "cost * outer * B_v * (1 + 2 * kappa * B_qk)",
                "cost * outer * B_v * (1 + kappa * B_qk)",
            ),
            "1 + dropped": (
                "cost * outer * B_v * (1 + 2 * kappa * B_qk)",
                "cost * outer * B_v * (2 * kappa * B_qk)",
            ),
            "C for C_x": (
                "(gamma + layer_term + jnp.cbrt(C_x * keys)) ** 3",
                "(gamma + layer_term + jnp.cbrt(C * keys)) ** 3",
            ),
        },
    ),
    *_changed(
        "lemma_e_2",
        "Lemma E.2",
        "lemma-e-2-sharp",
        {
            "2 kappa of the rows dropped": (
                "inner * (1 + 2 * kappa * size",
                "inner * (1 + 0 * kappa * size",
            ),
            "1 of the rows dropped": (
                "inner * (1 + 2 * kappa * size",
                "inner * (2 * kappa * size",
            ),
            "1/10 for B_v of W_QK": (
                "kappa * inner * longest(g_hat",
                "kappa * outer / 10 * longest(g_hat",
            ),
            "a tenth of the values": (
                "        outer * longest(g_hat @ (true.value",
                "        0.1 * outer * longest(g_hat @ (true.value",
            ),
            "a tenth of W_c": (
                "        longest(seen @ (true.output",
                "        0.1 * longest(seen @ (true.output",
            ),
        },
    ),
    *_changed(
        "lemma_e_2",
        "Lemma E.2 at i = 1",
        "lemma-e-2-first-layer-corrected",
        {
            "B_x to the first power": (
                "* longest(X) ** power\n",
                "* longest(X)\n",
            ),
            "values dropped": (
                "of_output + of_value + of_query_key",
                "of_output + of_query_key",
            ),
            "output dropped": (
                "of_output + of_value + of_query_key",
                "of_value + of_query_key",
            ),
        },
    ),
    *_changed(
        "lemma_e_2",
        "Lemma E.3",
        "lemma-e-3",
        {
            "readout dropped": (
                "change + readout * jnp.abs((w - w_hat) @ y_hat)",
                "change",
            ),
            "half of the rows": (
                "right = rows * size * change",
                "right = rows / 2 * size * change",
            ),
        },
    ),
    *_changed(
        "sections_4_2_and_4_3",
        "Section 4.3, order",
        "corollary-4-2-1-order",
        {
            "25^(L - 1) to 5^(L - 1)": (
                "cost**3 * 25.0 ** (L - 1)",
                "cost**3 * 5.0 ** (L - 1)",
            ),
            "cost squared": (
                "cost**3 * 25.0 ** (L - 1)",
                "cost**2 * 25.0 ** (L - 1)",
            ),
            "log of k d": (
                "math.log(2 * _D * _K + 1)",
                "math.log(2 * _D + 1)",
            ),
        },
    ),
    *_changed(
        "norm_facts",
        "Section 3.4",
        "section-3-4-norms",
        {
            "root of the number of columns": (
                "W.shape[1] ** power * right",
                "W.shape[1] ** (power / 2) * right",
            ),
        },
    ),
    *_changed(
        "norm_facts",
        "Section 3.4, balls",
        "section-3-4-balls",
        {
            "root of the rows dropped": (
                "W.shape[0] ** power * columns",
                "columns",
            ),
        },
    ),
    *_changed(
        "norm_facts",
        "Section 3.4, comparison",
        "section-3-4-comparison",
        {
            "third root of d": (
                "(d**power * B * B_x) ** 2 * jnp.log(2 * d * k + 1)",
                "(d ** (power / 3) * B * B_x) ** 2 * jnp.log(2 * d * k + 1)",
            ),
        },
    ),
    *_changed(
        "sequence_length",
        "Edelman et al. on [CLS]",
        "sequence-length-cls",
        {
            "sqrt(3) to 1/3": (
                "bound * jnp.sqrt(3.0) * epsilon",
                "bound / 3 * epsilon",
            ),
        },
    ),
    *_changed(
        "greedy_covers",
        "Lemma 3.1 on the l_1 ball",
        "greedy-cover",
        {
            "square of the steps": (
                "1 / (steps + more)",
                "1 / (steps + more) ** 2",
            ),
        },
    ),
    *_changed(
        "theorem_5_1",
        "Theorem 5.1, worst sample",
        "theorem-5-1-worst-sample",
        {
            "pi/2 dropped": (
                "math.sqrt(math.pi * (_WORDS + 1) / 2) * word",
                "math.sqrt(_WORDS + 1) * word",
            ),
        },
    ),
]
