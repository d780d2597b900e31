"""Mutants of the formulas of liu2021analyzing: sample sizes, regions, models, measures."""

from benchmarks.mutants.mutant import Mutant

_SIZES = "bounds/generalisation/liu2021_sample_size.py"
_UNION = "bounds/generalisation/liu2021_union_bound.py"
_REGIONS = "bounds/expressivity/liu2021_regions.py"
_SELF = "models/attention/self_attention_mlp.py"
_RECURRENT = "models/attention/recurrent_attention.py"
_FIXED = "models/attention/fixed_attention.py"
_DEEP = "models/attention/deep_self_attention.py"
_LAYERS = "models/networks/two_layer.py"
_RECTIFIER = "models/networks/rectifier.py"
_COVARIANCE = "measures/statistics/conditional_covariance.py"
_SLOPE = "measures/statistics/loglog_slope.py"
_ORBIT = "measures/curvature/orbit_flatness.py"
_STATIONARY = "measures/curvature/stationary_points.py"
_COUNTS = "measures/complexity/linear_regions.py"
_SHARES = "measures/attention/concentration.py"


def of(file, locator, *changes, claims=(), sharpening=""):
    """Mutants of one statement in one file: name, old text, new text."""
    return [Mutant(n, file, old, new, locator, claims, sharpening) for n, old, new in changes]


MUTANTS = [
    *of(
        _SIZES,
        "Theorem 1",
        ("spread^4 to ^2", "c * spread**4 * (eta", "c * spread**2 * (eta"),
        (
            "(eta/gamma)^2 to its root",
            "spread**4 * (eta / gamma) ** 2",
            "spread**4 * (eta / gamma)",
        ),
        ("no spread in the logarithm", "math.log(spread * eta / gamma)", "math.log(eta / gamma)"),
        (
            "pd + d to pd",
            "math.log(spread * eta / gamma) * (p * d + d)",
            "math.log(spread * eta / gamma) * (p * d)",
        ),
        (
            "eta = C_1 C_2",
            "spread, eta = _spread(p, s0, tau), C_1**2 * C_2",
            "spread, eta = _spread(p, s0, tau), C_1 * C_2",
        ),
        (
            "tau sqrt(p) to tau p",
            "math.sqrt(s0) + tau * math.sqrt(p)\n",
            "math.sqrt(s0) + tau * p\n",
        ),
        ("sqrt(s0) to s0", "return math.sqrt(s0) + tau", "return s0 + tau"),
        claims=["theorem-1-printed"],
    ),
    *of(
        _SIZES,
        "Corollary 1",
        ("p^2 to p", "c * (p * eta / gamma) ** 2", "c * p * (eta / gamma) ** 2"),
        (
            "sqrt(p) in the logarithm",
            "math.log(p * eta / gamma)",
            "math.log(math.sqrt(p) * eta / gamma)",
        ),
        ("eta = C_1^2", "    eta = C_1**2 * C_2\n", "    eta = C_1**2\n"),
        (
            "pd + d to pd",
            "math.log(p * eta / gamma) * (p * d + d)",
            "math.log(p * eta / gamma) * (p * d)",
        ),
        claims=["corollary-1-printed"],
    ),
    *of(
        _SIZES,
        "Theorem 2",
        ("without sqrt(p) t", "** 2 + math.sqrt(p) * t\n", "** 2\n"),
        ("sqrt(p) t to p t", "+ math.sqrt(p) * t\n", "+ p * t\n"),
        ("spread^2 to spread", "k = _spread(p, s0, tau) ** 2 +", "k = _spread(p, s0, tau) +"),
        ("k^2 to k", "c * (k * eta_a / gamma) ** 2", "c * k * (eta_a / gamma) ** 2"),
        ("eta_b = C_5 C_6", "C_1**2 * C_2 * C_8, C_5 + C_6", "C_1**2 * C_2 * C_8, C_5 * C_6"),
        ("eta_a without C_8", "C_1**2 * C_2 * C_8, C_5", "C_1**2 * C_2, C_5"),
        ("p d_v d to d_v d", "* p * d_v * d * math.log", "* d_v * d * math.log"),
        claims=["theorem-2-printed"],
    ),
    *of(
        _SIZES,
        "Theorem 3",
        (
            "times 1/gamma",
            "return c * math.log(c_k / gamma) * parameters",
            "return c * math.log(c_k / gamma) * parameters / gamma",
        ),
        ("corrected: level^2 to level", "c_k / level**2", "c_k / level"),
        ("corrected: without c_K", "c * c_k / level**2", "c / level**2"),
    ),
    *of(
        _SIZES,
        "Theorem 6",
        (
            "without C_1 C_x outside",
            "size = (C_1 * C_x * eta / gamma) ** 2\n        return c * size * math.log(eta * C_8",
            "size = (eta / gamma) ** 2\n        return c * size * math.log(eta * C_8",
        ),
        ("without C_9", "math.log(eta * C_8 * C_9 / gamma)", "math.log(eta * C_8 / gamma)"),
        ("without d_a", "(t * d + d + d_a + d_f)", "(t * d + d + d_f)"),
    ),
    *of(
        _SIZES,
        "Lemma 1",
        (
            "s0^2 to s0",
            "size = (s0 * C_1 * C_x * eta / gamma) ** 2",
            "size = s0 * (C_1 * C_x * eta / gamma) ** 2",
        ),
        ("without p", "(p * d + p + d)", "(p * d + d)"),
    ),
    *of(
        _SIZES,
        "Theorem 1",
        ("weight_norm left out", "_proved(C_1 * C_x * weight_norm,", "_proved(C_1 * C_x,"),
        (
            "features of Theorem 2 without sqrt(t)",
            "C_7 * C_x * math.sqrt(p * t)",
            "C_7 * C_x * math.sqrt(p)",
        ),
        ("stretch without t", "stretch = C_5 * C_6 * t * C_x**2", "stretch = C_5 * C_6 * C_x**2"),
        ("stretch without sqrt(d_q)", "C_x**2 / math.sqrt(d_q)", "C_x**2"),
        (
            "w_V not counted",
            "Block(p * d_v * d), Block(d_v * t), Block",
            "Block(p * d_v * d), Block",
        ),
        claims=["theorem-1-size", "theorem-2-size"],
    ),
    *of(
        _SIZES,
        "Theorem 6",
        (
            "proved: contexts without sqrt(t)",
            "_proved(C_1 * C_x * math.sqrt(t),",
            "_proved(C_1 * C_x,",
        ),
        ("proved: update without its stretch", "Block(d_f, C_9)", "Block(d_f)"),
        claims=["theorem-6-size"],
    ),
    *of(
        _SIZES,
        "Lemma 1",
        (
            "proved: masks without sqrt(s0)",
            "_proved(C_1 * C_x * math.sqrt(s0),",
            "_proved(C_1 * C_x,",
        ),
        claims=["lemma-1"],
    ),
    *of(
        _UNION,
        "Theorem 1",
        ("128 to 64", "128 * M**2 / level * entropy", "64 * M**2 / level * entropy"),
        ("128 to 129", "128 * M**2 / level * entropy", "129 * M**2 / level * entropy"),
        ("M without 2", "max(2 * C_2 * features**2,", "max(C_2 * features**2,"),
        ("noise B^2", "noise * features)", "noise * features**2)"),
        ("1 + 3 K to 1 + K", "(1 + 3 * len(blocks))", "(1 + len(blocks))"),
        ("3 / rho to 2 / rho", "d * math.log(3 / rho)", "d * math.log(2 / rho)"),
        ("log(4/delta) to log(2/delta)", "+ math.log(4 / failure)\n", "+ math.log(2 / failure)\n"),
        ("lambda squared", "level = smallest * (gamma**2", "level = smallest**2 * (gamma**2"),
        ("residual without C_2^2", "(gamma**2 - C_2**2 * residual)", "(gamma**2 - residual)"),
        claims=["theorem-1-size", "theorem-2-size"],
    ),
    *of(
        _UNION,
        "Lemma 1.1",
        (
            "gradient not squared",
            "gradient**2 / conditions.smallest",
            "gradient / conditions.smallest",
        ),
        ("residual times C_2", "+ C_2**2 * conditions.residual", "+ C_2 * conditions.residual"),
    ),
    *of(
        _REGIONS,
        "Theorem 4",
        ("the last binomial", "for j in range(s0 + 1))", "for j in range(s0))"),
        ("n1 / s0 rounded up", "(n1 // s0 +", "(-(-n1 // s0) +"),
        ("the power s0 - 1", '"corrected")) ** s0', '"corrected")) ** (s0 - 1)'),
        ("central: C(n, j)", "math.comb(n1 - 1, j)", "math.comb(n1, j)"),
        ("central: without 2", "return 2 * sum(", "return sum("),
    ),
    *of(
        _REGIONS,
        "Appendix C.1",
        (
            "break even: a sum",
            "p * math.log(p) - s0 * math.log(s0)",
            "p * math.log(p) + s0 * math.log(s0)",
        ),
        ("break even: over p", "/ (p - s0))", "/ p)"),
    ),
    *of(
        _COUNTS,
        "Theorem 4",
        ("jumps without the norm", "Fraction(0)) + weight * scale", "Fraction(0)) + weight"),
    ),
    *of(
        _SELF,
        "Section 2, (1)",
        ("softmax over queries", "(self.W_Q @ x)), axis=0)", "(self.W_Q @ x)), axis=1)"),
        (
            "queries and keys exchanged",
            "(self.W_K @ x).T @ (self.W_Q @ x)",
            "(self.W_Q @ x).T @ (self.W_K @ x)",
        ),
        (
            "d_q in place of its root",
            "math.sqrt(self.W_Q.shape[0]))\n        return jax.nn.softmax(scale",
            "self.W_Q.shape[0])\n        return jax.nn.softmax(scale",
        ),
    ),
    *of(
        _SELF,
        "Section 6",
        (
            "temperature upside down",
            "1 / (self.temperature * math.sqrt",
            "self.temperature / (math.sqrt",
        ),
    ),
    *of(
        _SELF,
        "Section 2, (2)",
        ("rows flattened", "self.attended(x).T.reshape(-1)", "self.attended(x).reshape(-1)"),
    ),
    *of(
        _DEEP,
        "Appendix A.4",
        ("deep: softmax over queries", "(self.W_Q @ x)), axis=0)", "(self.W_Q @ x)), axis=1)"),
        ("deep: values left out", "(self.W_V @ x) @ self.attention(x)", "(self.W_V @ x)"),
    ),
    *of(
        _RECURRENT,
        "Appendix B",
        (
            "recurrent: the new state scores",
            "self.score(state, x), -jnp.inf",
            "self.score(jnp.tanh(self.W_s @ state + self.W_c @ context + self.b), x), -jnp.inf",
        ),
        (
            "recurrent: no context in the update",
            "self.W_s @ state + self.W_c @ context + self.b",
            "self.W_s @ state + self.b",
        ),
        (
            "recurrent: the context is a sum",
            "return (after, x @ weights), weights",
            "return (after, x @ jnp.ones_like(weights)), weights",
        ),
        (
            "recurrent: the mean as context",
            "return (after, x @ weights), weights",
            "return (after, jnp.mean(x, axis=1)), weights",
        ),
        (
            "score without tanh",
            "self.v @ jnp.tanh((self.V_s @ state)[:, None] + self.V_x @ x)",
            "self.v @ ((self.V_s @ state)[:, None] + self.V_x @ x)",
        ),
    ),
    *of(
        _FIXED,
        "(A4)",
        ("top weights not scaled to the sum", "set(largest * total)", "set(largest)"),
    ),
    *of(
        _FIXED,
        "Section 3.1",
        (
            "Euclidean attention by the sum",
            "weights / jnp.sqrt(jnp.sum(weights**2))",
            "weights / jnp.sum(weights)",
        ),
        (
            "softmax attention times the temperature",
            "self.matrix @ x / self.temperature",
            "self.matrix @ x * self.temperature",
        ),
    ),
    *of(
        _LAYERS,
        "Section 3.1, (3)",
        ("attended: weights squared", "    return x * weights\n", "    return x * weights**2\n"),
    ),
    *of(
        _RECTIFIER,
        "Section 2",
        (
            "softplus without 1 / tau_0",
            "jax.nn.softplus(sharpness * z) / sharpness",
            "jax.nn.softplus(sharpness * z)",
        ),
    ),
    *of(
        _COVARIANCE,
        "(A3)",
        (
            "residuals without centring z2",
            "given - given.mean(0)[None, :]\n    left",
            "given\n    left",
        ),
        (
            "fresh errors without the mean",
            "fresh[0] - target.mean(0)[None, :] - centred @ slopes",
            "fresh[0] - centred @ slopes",
        ),
        ("Schur complement: a sum", "return own - (part", "return own + (part"),
        (
            "Schur complement: threshold 1e12 times",
            "given.shape[0] * jnp.finfo(given.dtype).eps * values[-1]",
            "1e12 * jnp.finfo(given.dtype).eps * values[-1]",
        ),
    ),
    *of(
        _SLOPE,
        "Theorem 1",
        (
            "slope - .2",
            "slope = float(log_x @ log_y / (log_x @ log_x))",
            "slope = float(log_x @ log_y / (log_x @ log_x)) - 0.2",
        ),
        (
            "bootstrap slopes - .2",
            "slopes = log_x @ centres / (log_x @ log_x)",
            "slopes = log_x @ centres / (log_x @ log_x) - 0.2",
        ),
    ),
    *of(
        _ORBIT,
        "Theorem 5",
        (
            "second layer times alpha",
            "jax.tree.map(lambda a: a / alpha, second)",
            "jax.tree.map(lambda a: a * alpha, second)",
        ),
        (
            "volume stretched by P1 + P2",
            "(parts[0].size - parts[1].size) * math.log(alpha)",
            "(parts[0].size + parts[1].size) * math.log(alpha)",
        ),
    ),
    *of(
        _ORBIT,
        "Definition 1",
        ("unit ball without Gamma", " - math.lgamma(size / 2 + 1)", ""),
        (
            "unit ball of one dimension less",
            "ball = size / 2 * math.log(math.pi)",
            "ball = (size - 1) / 2 * math.log(math.pi)",
        ),
    ),
    *of(
        _STATIONARY,
        "Theorem 1",
        (
            "certified at 1e4 times the tolerance",
            "jnp.where(norm <= tolerance,",
            "jnp.where(norm <= 1e4 * tolerance,",
        ),
    ),
    *of(
        _SHARES,
        "(A2)",
        (
            "s0 for (1 - tau) of the square",
            '"l2": (1 - tau) ** 2 * squares',
            '"l2": (1 - tau) * squares',
        ),
        (
            "one weight more in s0",
            "sizes = width + padding - gone",
            "sizes = width + padding - gone + 1",
        ),
        (
            "raw norm not squared",
            "np.full_like(total, (1 - tau) ** 2)",
            "np.full_like(total, 1 - tau)",
        ),
    ),
    *of(
        _SHARES,
        "Experiment 1",
        (
            "relative norm without its root",
            "np.sqrt(top_squares / squares)",
            "top_squares / squares",
        ),
        ("participation without the inverse", "        1 / squares,", "        squares,"),
    ),
    *of(
        _COVARIANCE,
        "(A3)",
        (
            "Schur complement: no threshold",
            "given.shape[0] * jnp.finfo(given.dtype).eps * values[-1]",
            "0 * values[-1]",
        ),
        sharpening=(
            "For covariances of one sample $\\Sigma_{12}$ vanishes in the null space of "
            "$\\Sigma_{22}$ up to rounding, whose square over an eigenvalue that is rounding is "
            "rounding again."
        ),
    ),
]
