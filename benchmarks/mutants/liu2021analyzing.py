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
        ("(eta/gamma)^2 to its root", "(eta / gamma) ** 2", "(eta / gamma)"),
        ("no spread in the logarithm", "math.log(spread * eta", "math.log(eta"),
        (
            "pd + d to pd",
            "math.log(spread * eta / gamma) * (p * d +",
            "math.log(spread * eta / gamma) * (p *",
        ),
        ("eta = C_1 C_2", "tau), C_1**2", "tau), C_1"),
        ("tau sqrt(p) to tau p", "math.sqrt(p)\n", "p\n"),
        ("sqrt(s0) to s0", "return math.sqrt(s0) + tau", "return s0 + tau"),
        claims=["theorem-1-printed"],
    ),
    *of(
        _SIZES,
        "Corollary 1",
        ("p^2 to p", "c * (p * eta / gamma) ** 2", "c * p * (eta / gamma) ** 2"),
        ("sqrt(p) in the logarithm", "math.log(p", "math.log(math.sqrt(p)"),
        ("eta = C_1^2", "    eta = C_1**2 * C_2\n", "    eta = C_1**2\n"),
        (
            "Corollary 1: pd + d to pd",
            "math.log(p * eta / gamma) * (p * d +",
            "math.log(p * eta / gamma) * (p *",
        ),
        claims=["corollary-1-printed"],
    ),
    *of(
        _SIZES,
        "Theorem 2",
        ("without sqrt(p) t", "** 2 + math.sqrt(p) * t\n", "** 2\n"),
        ("sqrt(p) t to p t", "+ math.sqrt(p) * t\n", "+ p * t\n"),
        ("spread^2 to spread", "** 2 +", "+"),
        ("k^2 to k", "c * (k * eta_a / gamma) ** 2", "c * k * (eta_a / gamma) ** 2"),
        ("eta_b = C_5 C_6", "+ C_6", "* C_6"),
        ("eta_a without C_8", "C_1**2 * C_2 * C_8, C_5", "C_1**2 * C_2, C_5"),
        ("p d_v d to d_v d", "* p * d_v * d * math.log", "* d_v * d * math.log"),
        claims=["theorem-2-printed"],
    ),
    *of(
        _SIZES,
        "Theorem 3",
        ("times 1/gamma", "gamma) * parameters", "gamma) * parameters / gamma"),
        ("corrected: level^2 to level", "c_k / level**2", "c_k / level"),
        ("corrected: without c_K", "c * c_k / level**2", "c / level**2"),
    ),
    *of(
        _SIZES,
        "Theorem 6",
        ("without C_1 C_x outside", "(C_1 * C_x * eta", "(eta"),
        ("without C_9", "* C_9 /", "/"),
        ("without d_a", "(t * d + d + d_a + d_f)", "(t * d + d + d_f)"),
    ),
    *of(
        _SIZES,
        "Lemma 1",
        ("s0^2 to s0", "(s0 * C_1", "s0 * (C_1"),
        ("without p", "(p * d + p + d)", "(p * d + d)"),
    ),
    *of(
        _SIZES,
        "Theorem 1",
        ("weight_norm left out", "C_x * weight_norm,", "C_x,"),
        ("features of Theorem 2 without sqrt(t)", "math.sqrt(p * t)", "math.sqrt(p)"),
        ("stretch without t", "t * C_x**2", "C_x**2"),
        ("stretch without sqrt(d_q)", "C_x**2 / math.sqrt(d_q)", "C_x**2"),
        ("w_V not counted", "Block(d_v * t), Block", "Block"),
        claims=["theorem-1-size", "theorem-2-size"],
    ),
    *of(
        _SIZES,
        "Theorem 6",
        ("proved: contexts without sqrt(t)", "C_x * math.sqrt(t),", "C_x,"),
        ("proved: update without its stretch", "Block(d_f, C_9)", "Block(d_f)"),
        claims=["theorem-6-size"],
    ),
    *of(
        _SIZES,
        "Lemma 1",
        ("proved: masks without sqrt(s0)", "C_x * math.sqrt(s0),", "C_x,"),
        claims=["lemma-1"],
    ),
    *of(
        _UNION,
        "Theorem 1",
        ("128 to 64", "128 * M**2 / level * entropy", "64 * M**2 / level * entropy"),
        ("128 to 129", "128 * M**2 / level * entropy", "129 * M**2 / level * entropy"),
        ("the noise's spread left out", ", 2 * math.log(4 / failure))", ", 0.0)"),
        ("stretches below one", "max(1.0, block.stretch)", "block.stretch"),
        ("M without 2", "max(2 * C_2 * features**2,", "max(C_2 * features**2,"),
        ("noise B^2", "noise * features)", "noise * features**2)"),
        ("1 + 3 K to 1 + K", "(1 + 3 * len(blocks))", "(1 + len(blocks))"),
        ("3 / rho to 2 / rho", "d * math.log(3 / rho)", "d * math.log(2 / rho)"),
        ("log(4/delta) to log(2/delta)", "math.log(4 / failure)\n", "math.log(2 / failure)\n"),
        ("lambda squared", "smallest *", "smallest**2 *"),
        ("residual without C_2^2", "C_2**2 * residual)", "residual)"),
        claims=["theorem-1-size", "theorem-2-size"],
    ),
    *of(
        _UNION,
        "Lemma 1.1",
        ("gradient not squared", "gradient**2", "gradient"),
        ("residual times C_2", "C_2**2 * conditions.residual", "C_2 * conditions.residual"),
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
        ("break even: a sum", "- s0 *", "+ s0 *"),
        ("break even: over p", "/ (p - s0))", "/ p)"),
    ),
    *of(
        _COUNTS,
        "Theorem 4",
        ("jumps without the norm", "weight * scale", "weight"),
    ),
    *of(
        _SELF,
        "Section 2, (1)",
        ("softmax over queries", "axis=0", "axis=1"),
        (
            "queries and keys exchanged",
            "(self.W_K @ x).T @ (self.W_Q",
            "(self.W_Q @ x).T @ (self.W_K",
        ),
        ("d_q in place of its root", "math.sqrt(self.W_Q.shape[0]))", "self.W_Q.shape[0])"),
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
        ("rows flattened", "x).T.reshape(-1", "x).reshape(-1"),
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
            "self.score(state",
            "self.score(jnp.tanh(self.W_s @ state + self.W_c @ context + self.b)",
        ),
        ("recurrent: no context in the update", "self.W_c @ context + self.b", "self.b"),
        ("recurrent: the context is a sum", "weights),", "jnp.ones_like(weights)),"),
        ("recurrent: the mean as context", "x @ weights),", "jnp.mean(x, axis=1)),"),
        ("score without tanh", "jnp.tanh((self.V_s", "((self.V_s"),
    ),
    *of(
        _FIXED,
        "(A4)",
        ("top weights not scaled to the sum", "set(largest * total)", "set(largest)"),
    ),
    *of(
        _FIXED,
        "Section 3.1",
        ("Euclidean attention by the sum", "jnp.sqrt(jnp.sum(weights**2))", "jnp.sum(weights)"),
        ("softmax attention times the temperature", "/ self.temperature", "* self.temperature"),
    ),
    *of(
        _LAYERS,
        "Section 3.1, (3)",
        ("attended: weights squared", "    return x * weights\n", "    return x * weights**2\n"),
    ),
    *of(
        _RECTIFIER,
        "Section 2",
        ("softplus without 1 / tau_0", "z) / sharpness", "z)"),
    ),
    *of(
        _COVARIANCE,
        "(A3)",
        ("residuals without centring z2", "regressors - regressors.mean(0)[None, :]", "regressors"),
        ("fresh errors without the mean", "target.mean(0)[None, :] - centred", "centred"),
        ("Schur complement: a sum", "return target - (part", "return target + (part"),
        ("Schur complement: threshold 1e12 times", "regressors.shape[0]", "1e12"),
    ),
    *of(
        _SLOPE,
        "Theorem 1",
        ("slope - .2", "log_x))", "log_x)) - 0.2"),
        ("bootstrap slopes - .2", "centres / (log_x @ log_x)", "centres / (log_x @ log_x) - 0.2"),
    ),
    *of(
        _ORBIT,
        "Theorem 5",
        ("second layer times alpha", "/ alpha,", "* alpha,"),
        ("volume stretched by P1 + P2", "- layers[1].size)", "+ layers[1].size)"),
    ),
    *of(
        _ORBIT,
        "Definition 1",
        ("unit ball without Gamma", " - math.lgamma(size / 2 + 1)", ""),
        ("unit ball of one dimension less", "size / 2 *", "(size - 1) / 2 *"),
    ),
    *of(
        _STATIONARY,
        "Theorem 1",
        ("certified at 1e4 times the tolerance", "<= tolerance,", "<= 1e4 * tolerance,"),
    ),
    *of(
        _SHARES,
        "(A2)",
        ("s0 for (1 - tau) of the square", "** 2 *", "*"),
        ("one weight more in s0", "- gone", "- gone + 1"),
        ("raw norm not squared", "(1 - tau) ** 2)", "1 - tau)"),
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
            "regressors.shape[0] * jnp.finfo(regressors.dtype).eps",
            "0",
        ),
        sharpening=(
            "For covariances of one sample $\\Sigma_{12}$ vanishes in the null space of "
            "$\\Sigma_{22}$ up to rounding, whose square over an eigenvalue that is rounding is "
            "rounding again."
        ),
    ),
    Mutant(
        "trained error: 8 for 16",
        "bounds/generalisation/trained_network_error.py",
        "b = 2 * noise * math.sqrt(2 * level / n)",
        "b = noise * math.sqrt(2 * level / n)",
        "Theorem 3",
        ["finite-class"],
    ),
    Mutant(
        "trained stretch: no layers",
        "bounds/generalisation/trained_network_error.py",
        "(1 + 2 * bound) + 3 + 2 * bound",
        "(1 + 2 * bound) + 1",
        "Theorem 3",
        ["moved-outputs"],
    ),
    Mutant(
        "attended risk: no minus 1",
        "bounds/generalisation/attended_risk.py",
        "parameters / (n - parameters - 1)",
        "parameters / (n - parameters)",
        "beyond the paper",
        ["known-support-risk"],
    ),
    Mutant(
        "attended floor: n for n + 1",
        "bounds/generalisation/attended_risk.py",
        "spare = n + 1 + ridge - parameters",
        "spare = n - 1 + ridge - parameters",
        "beyond the paper",
        ["moving-support-floor"],
    ),
    Mutant(
        "attended factor: no 1 beside 1/r",
        "bounds/generalisation/attended_risk.py",
        "p * d * (1 + 1 / risk) - 1",
        "p * d * (2 + 1 / risk) - 1",
        "beyond the paper",
        ["advantage-factor"],
    ),
]
