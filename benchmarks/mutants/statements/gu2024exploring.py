"""Mutants of formulas that stand in claim files alone: each is a stronger statement."""

from functools import partial

from benchmarks.mutants.mutant import statement

_changed = partial(statement, "gu2024exploring")

MUTANTS = [
    *_changed(
        "facts",
        "Fact A.9",
        "lemma-a-9",
        {
            "ranges halved": (
                "2 * jnp.exp(-factor * t**2 / jnp.sum((2 * a) ** 2))",
                "2 * jnp.exp(-factor * t**2 / jnp.sum(a**2))",
            ),
            "2 to 1/2": (
                "2 * jnp.exp(-factor * t**2 /",
                "0.5 * jnp.exp(-factor * t**2 /",
            ),
        },
    ),
    *_changed(
        "facts",
        "Fact A.8",
        "fact-a-8",
        {
            "third power": (
                "factor * x**2, magnitude=jnp.abs(x)",
                "factor * jnp.abs(x) ** 3, magnitude=jnp.abs(x)",
            ),
        },
    ),
    *_changed(
        "lemma_5_3",
        "Lemma 5.3, weights, sharpened",
        "lemma-5-3-weights-sharp",
        {
            "m squared": (
                "4 * factor * lipschitz * norm(Y) / (m * lam)",
                "4 * factor * lipschitz * norm(Y) / (m**2 * lam)",
            ),
            "lambda to 1000": (
                "4 * factor * lipschitz * norm(Y) / (m * lam)",
                "4 * factor * lipschitz * norm(Y) / (m * 1e3)",
            ),
        },
    ),
    *_changed(
        "lemma_5_3",
        "Lemma 5.3, loss",
        "lemma-5-3-loss",
        {
            "lambda/2 to 2.5 lambda": (
                "return Sides(lam / 2, decrease / unit",
                "return Sides(2.5 * lam, decrease / unit",
            ),
        },
    ),
    *_changed(
        "theorem_4_2",
        "Theorem 4.2, weights",
        "theorem-4-2-sharp-weights",
        {
            "4.2 to 1/4": (
                "return 4.2 * (c * P",
                "return 0.25 * (c * P",
            ),
            "1/9 for the root of n d": (
                "(c * P * jnp.sqrt(float(Y.size)) * norm(Y))",
                "(c * P / 9 * norm(Y))",
            ),
            "1/m^2": (
                "norm(Y)) / (m * lam), c",
                "norm(Y)) / (m**2 * lam), c",
            ),
        },
    ),
    *_changed(
        "theorem_4_2",
        "Theorem 4.2, weights",
        "theorem-4-2-sharp-weights-one-sample",
        {
            "root of n d dropped": (
                "(c * P * jnp.sqrt(float(Y.size)) * norm(Y))",
                "(c * P * norm(Y))",
            ),
        },
    ),
    *_changed(
        "theorem_4_2",
        "Theorem 4.2 for gradient flow",
        "theorem-4-2-flow",
        {
            "lambda/2 to 2 lambda": (
                "jnp.exp(-faster * lam * time / 2)",
                "jnp.exp(-faster * lam * time * 2)",
            ),
        },
    ),
    *_changed(
        "lemma_e_1",
        "Lemma E.1, Theta(1)",
        "lemma-e-1-factor",
        {
            "e^|delta| dropped": (
                "size * jnp.exp(size) / divisor",
                "size / divisor",
            ),
            "delta squared": (
                "size * jnp.exp(size) / divisor",
                "size**2 * jnp.exp(size) / divisor",
            ),
        },
    ),
    *_changed(
        "lemma_e_2",
        "Lemma C.4, sharpened",
        "lemma-c-4-sharp",
        {
            "root of n d dropped": (
                "jnp.sqrt(step.size) * jnp.sqrt(jnp.sum(step.u**2))",
                "jnp.sqrt(jnp.sum(step.u**2))",
            ),
            "P dropped": (
                "longest = step.c * step.share * jnp",
                "longest = step.c * jnp",
            ),
        },
    ),
    *_changed(
        "lemma_e_2",
        "Lemma E.2, step",
        "lemma-e-2-step",
        {
            "e^17B": (
                "jnp.exp(16 * B) / lam",
                "jnp.exp(17 * B) / lam",
            ),
            "n cubed": (
                "eta * n**2 * d**2 * jnp.exp(16 * B) / lam",
                "eta * n**3 * d**2 * jnp.exp(16 * B) / lam",
            ),
        },
    ),
    *_changed(
        "lemmas_d",
        "Lemma D.2",
        "lemma-d-2",
        {
            "m n k squared": (
                "jnp.exp(-decay * B) / (m * n * k)",
                "jnp.exp(-decay * B) / (m * n * k) ** 2",
            ),
        },
    ),
    *_changed(
        "lemmas_d",
        "Lemma D.1, sharpened",
        "lemma-d-1-sharp",
        {
            "P dropped in D.1": (
                "step.c * step.share * jnp.sqrt(size) * norm(step.u)",
                "step.c * jnp.sqrt(size) * norm(step.u)",
            ),
            "residual squared": (
                "step.c * step.share * jnp.sqrt(size) * norm(step.u)",
                "step.c * step.share * jnp.sqrt(size) * norm(step.u) ** 2",
            ),
        },
    ),
    *_changed(
        "lemmas_e",
        "Lemma E.3, sharpened",
        "lemma-e-3-sharp",
        {
            "residual to the fourth power": (
                "jnp.sqrt(step.size) * norm(step.u) ** 2\n    return Sides(jnp.abs(C), 2.0102",
                "jnp.sqrt(step.size) * norm(step.u) ** 4\n    return Sides(jnp.abs(C), 2.0102",
            ),
            "F squared": (
                "2.0102 * step.eta * size * norm(step.after)",
                "2.0102 * step.eta * size * norm(step.after) ** 2",
            ),
        },
    ),
    *_changed(
        "lemmas_e",
        "Lemma E.4, sharpened",
        "lemma-e-4-sharp",
        {
            "2 to 1/8": (
                "2 * lost, magnitude=rounding + along",
                "lost / 8, magnitude=rounding + along",
            ),
            "F over m^2": (
                "norm(step.F) / step.m\n    return Sides(jnp.abs(C + factor",
                "norm(step.F) / step.m**2\n    return Sides(jnp.abs(C + factor",
            ),
        },
    ),
    *_changed(
        "lemmas_e",
        "Claim E.6, sharpened",
        "claim-e-6-sharp",
        {
            "m dropped": (
                "2 * theta * step.m * length**2",
                "2 * theta * length**2",
            ),
            "n d to the power 1/4": (
                "length**2 * step.size**1.5 * square",
                "length**2 * step.size**0.25 * square",
            ),
            "length to the third": (
                "step.m * length**2 * step.size",
                "step.m * length**3 * step.size",
            ),
            "residual to the sixth power": (
                "step.size**1.5 * square * norm(step.u)",
                "step.size**1.5 * square**3",
            ),
        },
    ),
    *_changed(
        "lemmas_e",
        "Claim E.7, sharpened",
        "claim-e-7-sharp",
        {
            "1.0311 to 1/10": (
                "return 1.0311 * move**2",
                "return 0.1 * move**2",
            ),
            "c once": (
                "step.eta * step.c**2 * step.share * size",
                "step.eta * step.c * step.share * size",
                # f_i = F_li / m, i and j two pairs of a sample and an output.
                "true: a step changes an output by m eta sum_j |u_j| m sum_r S_ir S_jr |a_r - f_i| "
                "|a_r - f_j| at most (times 1.0154). With m S_jr <= P what is left is a mean over "
                "r with the weights S_ir, where |a_r - f_j| <= c and the mean of |a_r - f_i| is "
                "sqrt(1 - f_i^2) <= 1 at most since f_i is the mean of a_r = +-1.",
            ),
            "c to the power -2": (
                "step.eta * step.c**2 * step.share * size",
                "step.eta / step.c**2 * step.share * size",
            ),
            "P dropped": (
                "step.eta * step.c**2 * step.share * size",
                "step.eta * step.c**2 * size",
            ),
        },
    ),
    *_changed(
        "assumption_6_4",
        "Assumption 6.4 for bounded data",
        "assumption-6-4",
        {
            "D to the first power": (
                "spread = beta * D**2 / variance\n",
                "spread = beta * D / variance\n",
            ),
            "quarter of D^2 (sharp) to an eighth": (
                "spread = beta * D**2 / variance\n",
                "spread = beta * D**2 / 8 / variance\n",
            ),
        },
    ),
    *_changed(
        "reverse_sde",
        "noise as the start",
        "reverse-from-noise",
        {
            "beta^2 to beta^4": (
                "signal = beta**2 * C / late",
                "signal = beta**4 * C / late",
            ),
        },
    ),
    *_changed(
        "theorems_g",
        "Theorem G.4, sharpened",
        "theorem-g-4-sharp",
        {
            "tau dropped": (
                "jnp.sqrt(tau * own_test) *",
                "jnp.sqrt(own_test) *",
            ),
            "mean difference": (
                "jnp.sqrt(jnp.sum((Y_true - ball_at_X) ** 2))",
                "jnp.sqrt(jnp.mean((Y_true - ball_at_X) ** 2))",
            ),
        },
    ),
]
