"""Mutants of the formulas of liu2021analyzing: sample sizes, regions, models, measures."""

from functools import partial

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

_one = partial(Mutant, locator="Theorem 1", claims=["theorem-1-printed"])
_baseline = partial(Mutant, locator="Corollary 1", claims=["corollary-1-printed"])
_two = partial(Mutant, locator="Theorem 2", claims=["theorem-2-printed"])
_proved = partial(Mutant, locator="Theorem 1", claims=["theorem-1-size", "theorem-2-size"])

MUTANTS = [
    # Printed sample sizes.
    _one("spread^4 to ^2", _SIZES, "c * spread**4 * (eta", "c * spread**2 * (eta"),
    _one(
        "(eta/gamma)^2 to its root",
        _SIZES,
        "spread**4 * (eta / gamma) ** 2",
        "spread**4 * (eta / gamma)",
    ),
    _one(
        "no spread in the logarithm",
        _SIZES,
        "math.log(spread * eta / gamma)",
        "math.log(eta / gamma)",
    ),
    _one(
        "pd + d to pd",
        _SIZES,
        "math.log(spread * eta / gamma) * (p * d + d)",
        "math.log(spread * eta / gamma) * (p * d)",
    ),
    _one(
        "eta = C_1 C_2",
        _SIZES,
        "spread, eta = _spread(p, s0, tau), C_1**2 * C_2",
        "spread, eta = _spread(p, s0, tau), C_1 * C_2",
    ),
    _one(
        "tau sqrt(p) to tau p",
        _SIZES,
        "math.sqrt(s0) + tau * math.sqrt(p)\n",
        "math.sqrt(s0) + tau * p\n",
    ),
    _one("sqrt(s0) to s0", _SIZES, "return math.sqrt(s0) + tau", "return s0 + tau"),
    _baseline("p^2 to p", _SIZES, "c * (p * eta / gamma) ** 2", "c * p * (eta / gamma) ** 2"),
    _baseline(
        "sqrt(p) in the logarithm",
        _SIZES,
        "math.log(p * eta / gamma)",
        "math.log(math.sqrt(p) * eta / gamma)",
    ),
    _baseline("eta = C_1^2", _SIZES, "    eta = C_1**2 * C_2\n", "    eta = C_1**2\n"),
    _baseline(
        "pd + d to pd",
        _SIZES,
        "math.log(p * eta / gamma) * (p * d + d)",
        "math.log(p * eta / gamma) * (p * d)",
    ),
    _two("without sqrt(p) t", _SIZES, "** 2 + math.sqrt(p) * t\n", "** 2\n"),
    _two("sqrt(p) t to p t", _SIZES, "+ math.sqrt(p) * t\n", "+ p * t\n"),
    _two(
        "spread^2 to spread", _SIZES, "k = _spread(p, s0, tau) ** 2 +", "k = _spread(p, s0, tau) +"
    ),
    _two("k^2 to k", _SIZES, "c * (k * eta_a / gamma) ** 2", "c * k * (eta_a / gamma) ** 2"),
    _two(
        "eta_b = C_5 C_6", _SIZES, "C_1**2 * C_2 * C_8, C_5 + C_6", "C_1**2 * C_2 * C_8, C_5 * C_6"
    ),
    _two("eta_a without C_8", _SIZES, "C_1**2 * C_2 * C_8, C_5", "C_1**2 * C_2, C_5"),
    _two("p d_v d to d_v d", _SIZES, "* p * d_v * d * math.log", "* d_v * d * math.log"),
    Mutant(
        "times 1/gamma",
        _SIZES,
        "return c * math.log(c_k / gamma) * parameters",
        "return c * math.log(c_k / gamma) * parameters / gamma",
        "Theorem 3",
    ),
    Mutant("corrected: level^2 to level", _SIZES, "c_k / level**2", "c_k / level", "Theorem 3"),
    Mutant("corrected: without c_K", _SIZES, "c * c_k / level**2", "c / level**2", "Theorem 3"),
    Mutant(
        "without C_1 C_x outside",
        _SIZES,
        "size = (C_1 * C_x * eta / gamma) ** 2\n        return c * size * math.log(eta * C_8",
        "size = (eta / gamma) ** 2\n        return c * size * math.log(eta * C_8",
        "Theorem 6",
    ),
    Mutant(
        "without C_9",
        _SIZES,
        "math.log(eta * C_8 * C_9 / gamma)",
        "math.log(eta * C_8 / gamma)",
        "Theorem 6",
    ),
    Mutant("without d_a", _SIZES, "(t * d + d + d_a + d_f)", "(t * d + d + d_f)", "Theorem 6"),
    Mutant(
        "s0^2 to s0",
        _SIZES,
        "size = (s0 * C_1 * C_x * eta / gamma) ** 2",
        "size = s0 * (C_1 * C_x * eta / gamma) ** 2",
        "Lemma 1",
    ),
    Mutant("without p", _SIZES, "(p * d + p + d)", "(p * d + d)", "Lemma 1"),
    # What is proved.
    _proved(
        "weight_norm left out", _SIZES, "_proved(C_1 * C_x * weight_norm,", "_proved(C_1 * C_x,"
    ),
    _proved(
        "features of Theorem 2 without sqrt(t)",
        _SIZES,
        "C_7 * C_x * math.sqrt(p * t)",
        "C_7 * C_x * math.sqrt(p)",
    ),
    _proved(
        "stretch without t",
        _SIZES,
        "stretch = C_5 * C_6 * t * C_x**2",
        "stretch = C_5 * C_6 * C_x**2",
    ),
    _proved("stretch without sqrt(d_q)", _SIZES, "C_x**2 / math.sqrt(d_q)", "C_x**2"),
    _proved(
        "w_V not counted",
        _SIZES,
        "Block(p * d_v * d), Block(d_v * t), Block",
        "Block(p * d_v * d), Block",
    ),
    Mutant(
        "proved: contexts without sqrt(t)",
        _SIZES,
        "_proved(C_1 * C_x * math.sqrt(t),",
        "_proved(C_1 * C_x,",
        "Theorem 6",
        ["theorem-6-size"],
    ),
    Mutant(
        "proved: update without its stretch",
        _SIZES,
        "Block(d_f, C_9)",
        "Block(d_f)",
        "Theorem 6",
        ["theorem-6-size"],
    ),
    Mutant(
        "proved: masks without sqrt(s0)",
        _SIZES,
        "_proved(C_1 * C_x * math.sqrt(s0),",
        "_proved(C_1 * C_x,",
        "Lemma 1",
        ["lemma-1"],
    ),
    _proved("128 to 64", _UNION, "128 * M**2 / level * entropy", "64 * M**2 / level * entropy"),
    _proved("128 to 129", _UNION, "128 * M**2 / level * entropy", "129 * M**2 / level * entropy"),
    _proved("M without 2", _UNION, "max(2 * C_2 * features**2,", "max(C_2 * features**2,"),
    _proved("noise B^2", _UNION, "noise * features)", "noise * features**2)"),
    _proved("1 + 3 K to 1 + K", _UNION, "(1 + 3 * len(blocks))", "(1 + len(blocks))"),
    _proved("3 / rho to 2 / rho", _UNION, "d * math.log(3 / rho)", "d * math.log(2 / rho)"),
    _proved(
        "log(4/delta) to log(2/delta)",
        _UNION,
        "+ math.log(4 / failure)\n",
        "+ math.log(2 / failure)\n",
    ),
    _proved(
        "lambda squared", _UNION, "level = smallest * (gamma**2", "level = smallest**2 * (gamma**2"
    ),
    _proved(
        "residual without C_2^2", _UNION, "(gamma**2 - C_2**2 * residual)", "(gamma**2 - residual)"
    ),
    Mutant(
        "gradient not squared",
        _UNION,
        "gradient**2 / conditions.smallest",
        "gradient / conditions.smallest",
        "Lemma 1.1",
    ),
    Mutant(
        "residual times C_2",
        _UNION,
        "+ C_2**2 * conditions.residual",
        "+ C_2 * conditions.residual",
        "Lemma 1.1",
    ),
    # Linear regions.
    Mutant(
        "the last binomial", _REGIONS, "for j in range(s0 + 1))", "for j in range(s0))", "Theorem 4"
    ),
    Mutant("n1 / s0 rounded up", _REGIONS, "(n1 // s0 +", "(-(-n1 // s0) +", "Theorem 4"),
    Mutant(
        "the power s0 - 1",
        _REGIONS,
        '"corrected")) ** s0',
        '"corrected")) ** (s0 - 1)',
        "Theorem 4",
    ),
    Mutant("central: C(n, j)", _REGIONS, "math.comb(n1 - 1, j)", "math.comb(n1, j)", "Theorem 4"),
    Mutant("central: without 2", _REGIONS, "return 2 * sum(", "return sum(", "Theorem 4"),
    Mutant(
        "break even: a sum",
        _REGIONS,
        "p * math.log(p) - s0 * math.log(s0)",
        "p * math.log(p) + s0 * math.log(s0)",
        "Appendix C.1",
    ),
    Mutant("break even: over p", _REGIONS, "/ (p - s0))", "/ p)", "Appendix C.1"),
    Mutant(
        "jumps without the norm",
        _COUNTS,
        "Fraction(0)) + weight * scale",
        "Fraction(0)) + weight",
        "Theorem 4",
    ),
    # Models.
    Mutant(
        "softmax over queries",
        _SELF,
        "(self.W_Q @ x)), axis=0)",
        "(self.W_Q @ x)), axis=1)",
        "Section 2, (1)",
    ),
    Mutant(
        "queries and keys exchanged",
        _SELF,
        "(self.W_K @ x).T @ (self.W_Q @ x)",
        "(self.W_Q @ x).T @ (self.W_K @ x)",
        "Section 2, (1)",
    ),
    Mutant(
        "d_q in place of its root",
        _SELF,
        "math.sqrt(self.W_Q.shape[0]))\n        return jax.nn.softmax(scale",
        "self.W_Q.shape[0])\n        return jax.nn.softmax(scale",
        "Section 2, (1)",
    ),
    Mutant(
        "temperature upside down",
        _SELF,
        "1 / (self.temperature * math.sqrt",
        "self.temperature / (math.sqrt",
        "Section 6",
    ),
    Mutant(
        "rows flattened",
        _SELF,
        "self.attended(x).T.reshape(-1)",
        "self.attended(x).reshape(-1)",
        "Section 2, (2)",
    ),
    Mutant(
        "deep: softmax over queries",
        _DEEP,
        "(self.W_Q @ x)), axis=0)",
        "(self.W_Q @ x)), axis=1)",
        "Appendix A.4",
    ),
    Mutant(
        "deep: values left out",
        _DEEP,
        "(self.W_V @ x) @ self.attention(x)",
        "(self.W_V @ x)",
        "Appendix A.4",
    ),
    Mutant(
        "recurrent: the new state scores",
        _RECURRENT,
        "self.score(state, x), -jnp.inf",
        "self.score(jnp.tanh(self.W_s @ state + self.W_c @ context + self.b), x), -jnp.inf",
        "Appendix B",
    ),
    Mutant(
        "recurrent: no context in the update",
        _RECURRENT,
        "self.W_s @ state + self.W_c @ context + self.b",
        "self.W_s @ state + self.b",
        "Appendix B",
    ),
    Mutant(
        "recurrent: the context is a sum",
        _RECURRENT,
        "return (after, x @ weights), weights",
        "return (after, x @ jnp.ones_like(weights)), weights",
        "Appendix B",
    ),
    Mutant(
        "recurrent: the mean as context",
        _RECURRENT,
        "return (after, x @ weights), weights",
        "return (after, jnp.mean(x, axis=1)), weights",
        "Appendix B",
    ),
    Mutant(
        "score without tanh",
        _RECURRENT,
        "self.v @ jnp.tanh((self.V_s @ state)[:, None] + self.V_x @ x)",
        "self.v @ ((self.V_s @ state)[:, None] + self.V_x @ x)",
        "Appendix B",
    ),
    Mutant(
        "top weights not scaled to the sum", _FIXED, "set(largest * total)", "set(largest)", "(A4)"
    ),
    Mutant(
        "Euclidean attention by the sum",
        _FIXED,
        "weights / jnp.sqrt(jnp.sum(weights**2))",
        "weights / jnp.sum(weights)",
        "Section 3.1",
    ),
    Mutant(
        "softmax attention times the temperature",
        _FIXED,
        "self.matrix @ x / self.temperature",
        "self.matrix @ x * self.temperature",
        "Section 3.1",
    ),
    Mutant(
        "attended: weights squared",
        _LAYERS,
        "    return x * weights\n",
        "    return x * weights**2\n",
        "Section 3.1, (3)",
    ),
    Mutant(
        "softplus without 1 / tau_0",
        _RECTIFIER,
        "jax.nn.softplus(sharpness * z) / sharpness",
        "jax.nn.softplus(sharpness * z)",
        "Section 2",
    ),
    # Measures.
    Mutant(
        "residuals without centring z2",
        _COVARIANCE,
        "given - given.mean(0)[None, :]\n    left",
        "given\n    left",
        "(A3)",
    ),
    Mutant(
        "fresh errors without the mean",
        _COVARIANCE,
        "fresh[0] - target.mean(0)[None, :] - centred @ slopes",
        "fresh[0] - centred @ slopes",
        "(A3)",
    ),
    Mutant(
        "Schur complement: a sum", _COVARIANCE, "return own - (part", "return own + (part", "(A3)"
    ),
    Mutant(
        "Schur complement: no threshold",
        _COVARIANCE,
        "given.shape[0] * jnp.finfo(given.dtype).eps * values[-1]",
        "0 * values[-1]",
        "(A3)",
    ),
    Mutant(
        "Schur complement: threshold 1e12 times",
        _COVARIANCE,
        "given.shape[0] * jnp.finfo(given.dtype).eps * values[-1]",
        "1e12 * jnp.finfo(given.dtype).eps * values[-1]",
        "(A3)",
    ),
    Mutant(
        "slope - .2",
        _SLOPE,
        "slope = float(log_x @ log_y / (log_x @ log_x))",
        "slope = float(log_x @ log_y / (log_x @ log_x)) - 0.2",
        "Theorem 1",
    ),
    Mutant(
        "bootstrap slopes - .2",
        _SLOPE,
        "slopes = log_x @ centres / (log_x @ log_x)",
        "slopes = log_x @ centres / (log_x @ log_x) - 0.2",
        "Theorem 1",
    ),
    Mutant(
        "second layer times alpha",
        _ORBIT,
        "jax.tree.map(lambda a: a / alpha, second)",
        "jax.tree.map(lambda a: a * alpha, second)",
        "Theorem 5",
    ),
    Mutant("unit ball without Gamma", _ORBIT, " - math.lgamma(size / 2 + 1)", "", "Definition 1"),
    Mutant(
        "unit ball of one dimension less",
        _ORBIT,
        "ball = size / 2 * math.log(math.pi)",
        "ball = (size - 1) / 2 * math.log(math.pi)",
        "Definition 1",
    ),
    Mutant(
        "volume stretched by P1 + P2",
        _ORBIT,
        "(parts[0].size - parts[1].size) * math.log(alpha)",
        "(parts[0].size + parts[1].size) * math.log(alpha)",
        "Theorem 5",
    ),
    Mutant(
        "certified at 1e4 times the tolerance",
        _STATIONARY,
        "jnp.where(norm <= tolerance,",
        "jnp.where(norm <= 1e4 * tolerance,",
        "Theorem 1",
    ),
    Mutant(
        "s0 for (1 - tau) of the square",
        _SHARES,
        '"l2": (1 - tau) ** 2 * squares',
        '"l2": (1 - tau) * squares',
        "(A2)",
    ),
    Mutant(
        "one weight more in s0",
        _SHARES,
        "sizes = width + padding - gone",
        "sizes = width + padding - gone + 1",
        "(A2)",
    ),
    Mutant(
        "raw norm not squared",
        _SHARES,
        "np.full_like(total, (1 - tau) ** 2)",
        "np.full_like(total, 1 - tau)",
        "(A2)",
    ),
    Mutant(
        "relative norm without its root",
        _SHARES,
        "np.sqrt(top_squares / squares)",
        "top_squares / squares",
        "Experiment 1",
    ),
    Mutant(
        "participation without the inverse",
        _SHARES,
        "        1 / squares,",
        "        squares,",
        "Experiment 1",
    ),
]
