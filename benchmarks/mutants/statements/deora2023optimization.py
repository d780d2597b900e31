"""Mutants of formulas that stand in claim files alone: each is a stronger statement."""

from functools import partial

from benchmarks.mutants.mutant import statement

_changed = partial(statement, "deora2023optimization")

MUTANTS = [
    *_changed(
        "proposition_4",
        "Proposition 4",
        "proposition-4-exponential",
        {
            "no bend": (
                'jnp.exp(part * bend(pair, "sharp")) * larger_end(pair)',
                "larger_end(pair)",
            ),
        },
    ),
    *_changed(
        "proposition_4",
        "Equation (16), sharpened",
        "equation-16-exponential",
        {
            "no growth": (
                'grown = jnp.exp(part * bend(pair, "sharp")) * there',
                "grown = there",
            ),
        },
    ),
    *_changed(
        "descent",
        "Equation (13)",
        "equation-13",
        {
            "eta/2 to 2 eta": (
                "return Sides(eta / 2 * square, drop",
                "return Sides(2 * eta * square, drop",
            ),
        },
    ),
    *_changed(
        "equation_8",
        "Equation (8), second line",
        "equation-8-irrelevant",
        {
            "2 Z_mu to Z_mu / 2": (
                "bound = 2 * mix.Z_mu *",
                "bound = 0.5 * mix.Z_mu *",
            ),
            "S^2 dropped": (
                "(mix.S**2 + mix.Z_nu + mix.Z_mu)\n",
                "(mix.Z_nu + mix.Z_mu)\n",
            ),
        },
    ),
    *_changed(
        "equation_8",
        "Section 5.3, gap",
        "equation-8-gap",
        {
            "25/16 to 9/10": (
                "25 / 16 * mix.S**power",
                "0.9 * mix.S**power",
            ),
        },
    ),
    *_changed(
        "proposition_3",
        "Proposition 3, gap",
        "proposition-3-gap-sharp",
        {
            "Z_nu dropped": (
                "least = (S**2 - mix.Z_nu) *",
                "least = S**2 *",
            ),
            "2 Z_mu to Z_mu": (
                "(S**2 - 2 * Z_mu) - last",
                "(S**2 - Z_mu) - last",
            ),
        },
    ),
    *_changed(
        "stability",
        "(20)",
        "equation-20",
        {
            "growth factor 1": (
                "bound = (1 + rate) * left[:, :-1] +",
                "bound = left[:, :-1] +",
            ),
            "distance before dropped": (
                "bound = (1 + rate) * left[:, :-1] +",
                "bound = rate * left[:, :-1] +",
            ),
            "lost sample over n^2": (
                'run["eta"] / LOO * slope',
                'run["eta"] / LOO**2 * slope',
            ),
        },
    ),
    *_changed(
        "regret",
        "Equation (17)",
        "equation-17-exponential",
        {
            "2 eta K to 2 eta K^2": (
                "path.square[0] / (2 * eta * _STEPS)",
                "path.square[0] / (2 * eta * _STEPS**2)",
            ),
        },
    ),
    *_changed(
        "ntk_w_part",
        "Section 5.2, noise-free",
        "ntk-w-part-noise-free",
        {
            "1 - zeta dropped": (
                "mix.T * zeta * (1 - zeta) * S**4",
                "mix.T * zeta * S**4",
            ),
            "S^3": (
                "mix.T * zeta * (1 - zeta) * S**4",
                "mix.T * zeta * (1 - zeta) * S**3",
            ),
            "M for M + 1": (
                "jnp.sqrt(2 * (mix.M + 1))\n    return Sides(left, factor",
                "jnp.sqrt(2 * mix.M)\n    return Sides(left, factor",
            ),
            "T dropped": (
                "right = c * mix.T * zeta",
                "right = c * zeta",
            ),
        },
    ),
    *_changed(
        "ntk_w_part",
        "Proposition 2, first term of (7), sharpened",
        "proposition-2-w-part-sharp",
        {
            "contrast without noise": (
                "contrast = zeta * (1 - zeta) * (S2 - 2 * Z_mu)",
                "contrast = zeta * (1 - zeta) * S2",
            ),
            "noise of both at Z_mu / 4": (
                "noise = (1 - zeta) * slack * 2 * Z_mu",
                "noise = (1 - zeta) * slack * Z_mu / 4",
            ),
            "noise of a relevant query dropped": (
                "relevant = contrast * (S2**2 - S2 * Z_mu) - noise * S2 * Z_mu",
                "relevant = contrast * (S2**2 - S2 * Z_mu)",
                # n, m: inner products of an irrelevant token with the patterns of y and -y.
                "true: with |n|, |m| <= Z_mu among irrelevant tokens cov(n - m, n) >= -Var(m)/4, "
                "and Var(m) <= 2 Z_mu (Z_mu + E m) <= S^2 (Z_mu + E m). For zeta >= 1/2 the gap of "
                "the classes, which is S^2 - 2 Z_mu only at E m = -Z_mu, makes up for it. For "
                "zeta <= 1/2 the other term does: its covariance is at least "
                "-Z_mu^2 (S^2 + Z_nu + 4 Z_mu) since (n - m)(n + m) = n^2 - m^2, and "
                "2 Z_mu b exceeds that by 3 Z_mu^2 S^2.",
            ),
            "noise of an irrelevant query dropped": (
                "(contrast * gap - noise * noise_of_pattern)",
                "contrast * gap",
            ),
            "T zeta / 4 to 1": (
                "mix.T * zeta / (4 * mix.key",
                "mix.T / (4 * mix.key",
            ),
        },
    ),
    *_changed(
        "ntk_w_part",
        "Proposition 2, second term of (7), sharpened",
        "proposition-2-p-term-sharp",
        {
            "2/sqrt(27) to 2/9": (
                "constant = 2 / 27**0.5 * jnp",
                "constant = 2 / 9 * jnp",
            ),
            "2/sqrt(27) to 1/9": (
                "constant = 2 / 27**0.5 * jnp",
                "constant = 1 / 9 * jnp",
            ),
            "R^3 to R^2": (
                "constant * mix.T * mix.radius**3",
                "constant * mix.T * mix.radius**2",
            ),
        },
    ),
    *_changed(
        "lemma_2",
        "Lemma 2, (6) without the dimension",
        "lemma-2-concentration-sharp",
        {
            "1 - zeta dropped": (
                "largest = zeta * S + (1 - zeta) * Mixture(S=S, **numbers).radius",
                "largest = zeta * S",
            ),
            "1/n": (
                "bound = largest / n_1**power *",
                "bound = largest / n_1 *",
            ),
        },
    ),
    *_changed(
        "other_losses",
        "Theorem 1 for other losses",
        "theorem-1-losses",
        {
            "loss of the target dropped": (
                "2 * there + path * 5 * D**2",
                "path * 5 * D**2",
            ),
            "K squared": (
                "5 * D**2 / (4 * eta * K), magnitude",
                "5 * D**2 / (4 * eta * K**2), magnitude",
            ),
        },
    ),
    *_changed(
        "other_losses",
        "Lemma 3 for other losses",
        "lemma-3-losses",
        {
            "2 to 1/5": (
                "2 * slope * likely @ stability, magnitude",
                "0.2 * slope * likely @ stability, magnitude",
            ),
        },
    ),
    *_changed(
        "head_scaling",
        "beyond the paper",
        "attention-freezes",
        {
            "H^-1/2 to H^-1": (
                "bound = eta / H**power * scale",
                "bound = eta / H * scale",
            ),
            "R^3 to R^2": (
                "token_bound(X) ** 3\n",
                "token_bound(X) ** 2\n",
            ),
            "root of T dropped": (
                "part * jnp.sqrt(jnp.asarray(X.shape[1], total.dtype)) *",
                "part *",
            ),
        },
    ),
    *_changed(
        "footnotes",
        "Footnote § of section 3",
        "footnote-decoder-norm",
        {
            "slope over 64": (
                "jnp.stack([at.slope * loss, at.smooth",
                "jnp.stack([at.slope * loss / 64, at.smooth",
            ),
            "smoothness over 64": (
                "loss, at.smooth, at.weak * loss])",
                "loss, at.smooth / 64, at.weak * loss])",
            ),
        },
    ),
    *_changed(
        "section_5_3",
        "Section 5.3",
        "section-5-3",
        {
            "2/sqrt(27) to 1/20": (
                "np.log(2 / 27**0.5)",
                "np.log(1 / 20)",
            ),
            "n's logarithm dropped": (
                "right = -0.5 * log_H - jnp.log(log_n) +",
                "right = -0.5 * log_H - 2 * jnp.log(log_n) +",
            ),
        },
    ),
]
