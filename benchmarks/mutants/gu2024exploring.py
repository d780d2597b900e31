"""Mutants of the formulas of gu2024exploring: at least one for each factor of each of them."""

from benchmarks.mutants.mutant import Mutant

_BOUNDS = "bounds/optimisation/gu2024_"


def _width(name, old, new, locator="Theorem 4.2", claim="theorem-4-2-formulas"):
    return Mutant(name, f"{_BOUNDS}convergence.py", old, new, locator, claims=[claim])


_RADIUS = "size = C * sigma * jnp.sqrt(jnp.log(jnp.asarray(n * d / delta)))"
_UNION = "size = sigma * jnp.sqrt(2 * jnp.log(jnp.asarray(n * m / (2 * delta))))"
_STEP = "scale = jnp.log10(jnp.asarray(0.1 * smallest)) - 2 * jnp.log10(jnp.asarray(1.0 * n * d))"
_POWERS = "power = (2 if relu else 2 + extra) * jnp.log10(n) - 2 * jnp.log10(jnp.asarray(smallest))"
_POLYNOMIAL = (
    "return power * jnp.log10(jnp.asarray(1.0 * n * d)) - 2 * jnp.log10(jnp.asarray(smallest))"
)
_GRADIENT = "return jnp.exp(3 * jnp.asarray(B)) * jnp.sqrt(jnp.asarray(1.0 * n * d)) * residual"
_TABLE, _INDUCTION, _B = "table-1-formulas", "induction-formulas", "definition-4-1"

_CONVERGENCE = [
    _width("B: d dropped", _RADIUS, _RADIUS.replace("n * d", "n"), "Definition 4.1", _B),
    _width("B: C dropped", _RADIUS, _RADIUS.replace("C * ", ""), "Definition 4.1", _B),
    _width("B: logarithm without a root", _RADIUS, _RADIUS.replace("jnp.sqrt", ""),
           "Definition 4.1", _B),
    _width("B: sigma squared", _RADIUS, _RADIUS.replace("C * sigma", "C * sigma**2"),
           "Definition 4.1", _B),
    _width("B: floor 2 in place of 1", "return jnp.maximum(size, 1)",
           "return jnp.maximum(size, 2)", "Definition 4.1", _B),
    _width("corrected B: without the 2 of the tail", _UNION, _UNION.replace("sqrt(2 * ", "sqrt("),
           "Definition 4.1", _B),
    _width("corrected B: m units in place of m/2", _UNION, _UNION.replace("(2 * delta)", "delta"),
           "Definition 4.1", _B),
    _width("width: e^16B", "WIDTH_EXPONENT = 18", "WIDTH_EXPONENT = 16"),
    _width("width: log to the first power", "logs = 2 * jnp.log10(jnp.log(jnp.asarray(n * d /",
           "logs = jnp.log10(jnp.log(jnp.asarray(n * d /"),
    _width("width: lambda^-1", _POLYNOMIAL, _POLYNOMIAL.replace("- 2 *", "-")),
    _width("width: d dropped", _POLYNOMIAL, _POLYNOMIAL.replace("1.0 * n * d", "1.0 * n")),
    _width("corrected width: no sqrt(2)", "b = WIDTH_EXPONENT * math.sqrt(2) * sigma",
           "b = WIDTH_EXPONENT * sigma", claim="theorem-4-2-widths"),
    _width("corrected width: log(n/delta)", "c = jnp.log(jnp.asarray(n / (2 * delta)))",
           "c = jnp.log(jnp.asarray(n / delta))", claim="theorem-4-2-widths"),
    _width("corrected width: smaller root", "u = (b + jnp.sqrt(b**2 + 4 * (others + c))) / 2",
           "u = (jnp.sqrt(b**2 + 4 * (others + c)) - b) / 2", claim="theorem-4-2-widths"),
    _width("step: 0.2", _STEP, _STEP.replace("0.1", "0.2")),
    _width("step: (nd)^1", _STEP, _STEP.replace("- 2 *", "-")),
    _width("step: lambda squared", _STEP, _STEP.replace("0.1 * smallest", "0.1 * smallest**2")),
    _width("step: e^14B", "STEP_EXPONENT = 16", "STEP_EXPONENT = 14"),
    _width("step: without m", "_power_of_e(STEP_EXPONENT, B) - width_log10",
           "_power_of_e(STEP_EXPONENT, B)"),
    _width("steps: 10 in place of 20", "jnp.log10(20 * jnp.log(", "jnp.log10(10 * jnp.log("),
    _width("steps: log(n/epsilon)", "20 * jnp.log(jnp.asarray(n * d / epsilon))",
           "20 * jnp.log(jnp.asarray(n / epsilon))"),
    _width("least T: rounded down", "return jnp.ceil(jnp.maximum(jnp.log(first",
           "return jnp.floor(jnp.maximum(jnp.log(first", claim="theorem-4-2-steps"),
    _width("least T: e^-rT", "-jnp.log1p(-jnp.asarray(rate))", "jnp.asarray(rate)",
           claim="theorem-4-2-steps"),
    _width("Table 1: n^2 without o(1)", _POWERS, _POWERS.replace("2 + extra", "2"), "Table 1",
           _TABLE),
    _width("Table 1: lambda^-1", _POWERS, _POWERS.replace("- 2 *", "-"), "Table 1", _TABLE),
    _width("Table 1: log n for all", "(1 if relu else 2) * jnp.log10(jnp.log(n))",
           "jnp.log10(jnp.log(n))", "Table 1", _TABLE),
    _width("Table 1: log(n/epsilon) for all", "inside = n / epsilon if relu else n**2 / epsilon",
           "inside = n / epsilon", "Table 1", _TABLE),
    _width("radius: without 1/(2nd)", "return smallest / (2 * n * d) * jnp.exp(-KERNEL",
           "return smallest * jnp.exp(-KERNEL", "Definition A.2", _INDUCTION),
    _width("radius: e^8B", "KERNEL_EXPONENT = 10", "KERNEL_EXPONENT = 8", "Definition A.2",
           _INDUCTION),
    _width("movement: 1 in place of 8", "return 8 * gu2024_gradient(", "return gu2024_gradient(",
           "Lemma C.2", _INDUCTION),
    _width("movement: without 1/m", "start) / (m * smallest)", "start) / smallest", "Lemma C.2",
           _INDUCTION),
    _width("gradient: e^2B", _GRADIENT, _GRADIENT.replace("exp(3", "exp(2"), "Lemma D.1",
           _INDUCTION),
    _width("gradient: without d", _GRADIENT, _GRADIENT.replace("n * d", "n"), "Lemma D.1",
           _INDUCTION),
    _width("start: sqrt(nd) in the sharp one too", "(d if constants == \"printed\" else 1)", "d",
           "Lemma D.3", _INDUCTION),
]  # fmt: skip


def _moved(name, old, new, locator="Lemma B.1", claim="lemma-b-1-formulas"):
    return Mutant(name, f"{_BOUNDS}perturbation.py", old, new, locator, claims=[claim])


_SHARES = "shares = 4 * R * jnp.exp(4 * B + 3 * R)"
_UNITS = "units = 2 * R * jnp.exp(B + R)"
_NINE = "9: 2 * R / m * jnp.exp(3 * B + 2 * R)"
_SHARP, _PRINTED = "lemma-5-1-sharp-formulas", "lemma-5-1-formulas"
_RELATIVE = "lemma-b-1-relative-formulas"
_OVERLAP = "entries = inner * (shares @ shares.T) / network.width * spread"

_PERTURBATION = [
    _moved("part 1: 2B", "1: B,", "1: 2 * B,"),
    _moved("part 2: without R", "2: B + R,", "2: B,"),
    _moved("part 3: 2R", "3: R,", "3: 2 * R,"),
    _moved("part 4: e^2B", "4: jnp.exp(B),", "4: jnp.exp(2 * B),"),
    _moved("part 5: without R", "5: jnp.exp(B + R),", "5: jnp.exp(B),"),
    _moved("part 6: R", "6: 2 * R,", "6: R,"),
    _moved("parts 7, 8: R", _UNITS, _UNITS.replace("2 * R", "R")),
    _moved("parts 7, 8: e^B", _UNITS, _UNITS.replace("B + R", "B")),
    _moved("part 8: without m", "8: m * units,", "8: units,"),
    _moved("part 9: e^2B", _NINE, _NINE.replace("3 * B", "2 * B")),
    _moved("part 9: without 1/m", _NINE, _NINE.replace("R / m", "R")),
    _moved("part 9: e^R", _NINE, _NINE.replace("2 * R)", "R)")),
    _moved("part 10: e^B", "10: jnp.exp(2 * B) / m,", "10: jnp.exp(B) / m,"),
    _moved("part 11: without 2R", "11: jnp.exp(2 * B + 2 * R) / m,", "11: jnp.exp(2 * B) / m,"),
    _moved("parts 12, 13: e^2B", _SHARES, _SHARES.replace("4 * B", "2 * B")),
    _moved("parts 12, 13: 2R", _SHARES, _SHARES.replace("= 4", "= 2")),
    _moved("parts 12, 13: e^R", _SHARES, _SHARES.replace("3 * R", "R")),
    _moved("part 12: without 1/m", "12: shares / m,", "12: shares,"),
    _moved("sharp parts 7 to 9: R", "units = jnp.expm1(R)", "units = R", claim=_RELATIVE),
    _moved("sharp part 12: e^R", "12: jnp.expm1(2 * R)", "12: jnp.expm1(R)", claim=_RELATIVE),
    _moved("sharp part 13: tanh(R/2)", "13: 2 * jnp.tanh(R / 2)", "13: jnp.tanh(R / 2)",
           claim=_RELATIVE),
    _moved("sharp part 13: 2 tanh(R/4)", "13: 2 * jnp.tanh(R / 2)", "13: 2 * jnp.tanh(R / 4)",
           claim=_RELATIVE),
    _moved("kernel: e^8B", "jnp.exp(10 * B)", "jnp.exp(8 * B)", "Lemma 5.1", _PRINTED),
    _moved("kernel: R^2", "jnp.full((size, size), R * entry)",
           "jnp.full((size, size), R**2 * entry)", "Lemma 5.1", _PRINTED),
    _moved("ReLU: R", "Activation.RELU: 2.0,", "Activation.RELU: 1.0,", "Section 5", _PRINTED),
    _moved("exponential: R e^2B", "3 * jnp.exp(2 * B)", "jnp.exp(2 * B)", "Section 5", _PRINTED),
    _moved("exponential: 3 R e^B", "3 * jnp.exp(2 * B)", "3 * jnp.exp(B)", "Section 5", _PRINTED),
    _moved("sharp kernel: 1.5 R", "jnp.expm1(2 * (reach", "jnp.expm1(1.5 * (reach", "Lemma 5.1",
           _SHARP),
    _moved("sharp kernel: alpha without R", "/ network.width + reach[None, :]", "/ network.width",
           "Lemma 5.1", _SHARP),
    _moved("sharp kernel: alpha without the mean", "jnp.minimum(means, 1)",
           "jnp.minimum(0 * means + reach[None, :], 1)", "Lemma 5.1", _SHARP),
    _moved("sharp kernel: alpha up to 1/2", "jnp.minimum(means, 1)", "jnp.minimum(means, 0.5)",
           "Lemma 5.1", _SHARP),
    _moved("sharp kernel: without the overlap", _OVERLAP, "entries = inner * spread", "Lemma 5.1",
           _SHARP),
    _moved("sharp kernel: without the inner product", _OVERLAP,
           _OVERLAP.replace("inner * ", ""), "Lemma 5.1", _SHARP),
    _moved("sharp exponential: difference of inputs", "X[:, None, :] + X[None, :, :]",
           "X[:, None, :] - X[None, :, :]", "Section 5", _SHARP),
    _moved("sharp ReLU: inactive units forgotten", "may = (active | within).astype(float)",
           "may = active.astype(float)", "Section 5", _SHARP),
    _moved("sharp ReLU: sure units forgotten", "sure = (active & ~within).astype(float)",
           "sure = active.astype(float)", "Section 5", _SHARP),
]  # fmt: skip


def _flow(name, old, new, file="flow.py", claim="flow-certificate-formulas", at="Theorem 4.2"):
    return Mutant(name, _BOUNDS + file, old, new, at, claims=[claim])


_MOVEMENT = "return 2 * (1 + alpha) * k**0.5 * growth * P * jnp.linalg.norm(F - Y) / (m * smallest)"

_CERTIFICATE = [
    _flow("certificate: 1 in place of 2", _MOVEMENT, _MOVEMENT.replace("return 2 *", "return")),
    _flow("certificate: without 1 + alpha", _MOVEMENT, _MOVEMENT.replace("(1 + alpha) * ", "")),
    _flow("certificate: without sqrt(k)", _MOVEMENT, _MOVEMENT.replace("k**0.5 * ", "")),
    _flow("certificate: without 1/m", _MOVEMENT, _MOVEMENT.replace("(m * smallest)", "smallest")),
    _flow("certificate: without P", _MOVEMENT, _MOVEMENT.replace("P * ", "")),
    _flow("certificate: e^R", "jnp.exp(2 * R * jnp.max(lengths))", "jnp.exp(R * jnp.max(lengths))"),
    _flow("certificate: all of lambda", "<= smallest / 2", "<= smallest"),
    _flow("certificate: P without lengths", "(lengths[:, None] * shares) ** 2", "shares**2"),
    _flow("certificate: width without m", "network.width * ratio)", "ratio)"),
]

_VARIANCE = ("kernel_limit.py", "limit-moments", "Definition 3.6 at infinite width")
_LIMIT = [
    _flow("variance: 3 rho", "second = jnp.exp(left + right + 4 * rho)",
          "second = jnp.exp(left + right + 3 * rho)", *_VARIANCE),
    _flow("variance: without the ends", "return second + ends * (exp_2 - 2 * exp_3)",
          "return second", *_VARIANCE),
    _flow("variance: one e^3rho", "ends * (exp_2 - 2 * exp_3)", "ends * (exp_2 - exp_3)",
          *_VARIANCE),
    _flow("variance: without the square of the mean", "+ 2 * exp_1 * exp_2 - exp_2",
          "+ 2 * exp_1 * exp_2", *_VARIANCE),
    _flow("variance: exponential, third power", "mean**4 - mean**2", "mean**3 - mean**2",
          *_VARIANCE),
    _flow("variance: exponential, two outputs", "else mean**4", "else mean**2", *_VARIANCE),
    _flow("variance: ReLU without its mean", "overlap * (1 - overlap)", "overlap", *_VARIANCE),
    Mutant("limit: sigma", "kernels/softmax_network_limit.py", "inner * jnp.exp(sigma**2 * inner)",
           "inner * jnp.exp(sigma * inner)", _VARIANCE[2], claims=["limit-moments"]),
    Mutant("limit: exponential without 1/2", "kernels/softmax_network_limit.py", "squares / 2",
           "squares", _VARIANCE[2], claims=["limit-moments"]),
    Mutant("limit: ReLU, pi", "kernels/softmax_network_limit.py", "/ (2 * jnp.pi)", "/ jnp.pi",
           _VARIANCE[2], claims=["limit-moments"]),
]  # fmt: skip

_REGIME = ("regime.py", "regime-of-training", "Theorem 6.6")
_GAP = ("regression.py", "theorem-f-2-formulas", "Theorem F.2")
_SCORE = ("score.py", "theorem-6-6-formulas", "Theorem 6.6")
_LOGS = "logs = jnp.log(start**2 / (kernel_change * m * smallest)) ** 2"
_REGRESSION = [
    _flow("gap: rho = lambda", "rho = smallest / 2 if", "rho = smallest if", *_GAP),
    _flow("gap: without K_te", "test_kernel * kernel_change / smallest)",
          "kernel_change / smallest)", *_GAP),
    _flow("gap: without 1/lambda", "test_kernel * kernel_change / smallest)",
          "test_kernel * kernel_change)", *_GAP),
    _flow("printed gap: log to the first power", _LOGS, _LOGS.replace(" ** 2", ""), *_GAP),
    _flow("printed gap: log without m", _LOGS, _LOGS.replace("* m ", ""), *_GAP),
    _flow("printed gap: lambda^-1", "logs * kernel_change / smallest**2",
          "logs * kernel_change / smallest", *_GAP),
    _flow("gap in time: 1 - q", "* gone**2", "* gone", *_GAP),
    _flow("gap in time: rate m lambda", "jnp.expm1(-smallest * time / 2)",
          "jnp.expm1(-smallest * time)", *_GAP),
    _flow("gap in time: 1 in place of 2", "return 2 * start / smallest * (test_change * gone",
          "return start / smallest * (test_change * gone", *_GAP),
    _flow("coupling: tau^2", "time**2 / 2 * test_kernel", "time**2 * test_kernel", *_GAP),
    _flow("coupling: tau^2 / 4", "time**2 / 2 * test_kernel", "time**2 / 4 * test_kernel",
          "regression.py", "theorem-f-2-without-lambda", "Theorem F.2"),
    _flow("coupling: without eps_test", "(time * test_change + time**2", "(time**2", *_GAP),
    _flow("coupling: without the time of eps_test", "(time * test_change + time**2",
          "(test_change + time**2", *_GAP),
    _flow("coupling of fixed kernels: a third of the square", "series = x / 2", "series = x / 3",
          "regression.py", "coupling-of-fixed-kernels", "Theorem F.2"),
    _flow("coupling of fixed kernels: without the time", "test_kernel * time * _not_gone",
          "test_kernel * _not_gone", "regression.py", "coupling-of-fixed-kernels", "Theorem F.2"),
    _flow("coupling of fixed kernels: half of the change", "_not_gone(kernel_change * time)",
          "_not_gone(0.5 * kernel_change * time)", "regression.py", "coupling-of-fixed-kernels",
          "Theorem F.2"),
    _flow("regime: a third of the radius", "c = 2 * math.sqrt(k) * P", "c = 0.6 * math.sqrt(k) * P",
          *_REGIME),
    _flow("regime: mean share in place of the largest", "P = jnp.sqrt(jnp.max(jnp.sum(",
          "P = jnp.sqrt(jnp.mean(jnp.sum(", *_REGIME),
    _flow("regime: without the square of 1 + alpha and the exponent", "4 * k * jnp.expm1(4 * R)",
          "k / 2 * jnp.expm1(R)", *_REGIME),
    _flow("smallest eigenvalue: one degree more", "q = bisect_left(",
          "q = 1 + bisect_left(", "score.py", "smallest-eigenvalue-falls", "Theorem 6.6"),
    _flow("complexity: 1.9 in place of 2", "(2 * d**2 * logs + 1)", "(1.9 * d**2 * logs + 1)",
          "score.py", "theorem-6-6-never", "Theorem 6.6"),
    _flow("score: A with the exponent -1/d", "ratio ** (-2 / d)", "ratio ** (-1 / d)", *_SCORE),
    _flow("score: A without logarithm", "ratio ** (-2 / d) * jnp.log(ratio)", "ratio ** (-2 / d)",
          *_SCORE),
    _flow("score: A without Lambda", "c_1 * scale * ratio", "c_1 * ratio", *_SCORE),
    _flow("score: Lambda = d", "scale = jnp.sqrt(jnp.asarray(1.0 * d))",
          "scale = jnp.asarray(1.0 * d)", *_SCORE),
    _flow("score: log to the first power", "jnp.log(jnp.asarray(inside)) ** 1.5",
          "jnp.log(jnp.asarray(inside))", *_SCORE),
    _flow("score: d^2 in place of 2 d^2", "(2 * d**2 * logs + 1) ** 2 / n",
          "(d**2 * logs + 1) ** 2 / n", *_SCORE),
    _flow("score: Gamma squared over n", "(2 * d**2 * logs + 1) ** 2 / n",
          "(2 * d**2 * logs + 1) / n", *_SCORE),
    _flow("score: without log(1/delta)", "jnp.log(jnp.asarray(1 / delta)) + jnp.log(jnp.log(",
          "jnp.log(jnp.log(", *_SCORE),
    _flow("score: without log log n", "+ jnp.log(jnp.log(1.0 * n)))", ")", *_SCORE),
    _flow("score: e n", "math.e * (n + 1)", "math.e * n", *_SCORE),
    _flow("score: 1/sqrt(n)", "1 / (smallest * jnp.sqrt(jnp.asarray(1.0 * n)))",
          "1 / jnp.sqrt(jnp.asarray(1.0 * n))", *_SCORE),
    _flow("score: A^2 without d", "\"approximation_squared\": d * A**2",
          "\"approximation_squared\": A**2", *_SCORE),
    _flow("score: mixed term without its root", "jnp.sqrt(d * A * Gamma)", "d * A * Gamma",
          *_SCORE),
]  # fmt: skip

_FLOW = "kernels/regression_flow.py"
_DENSE = "kernels/dense_softmax_ntk.py"
_TILED = "kernels/softmax_network_ntk.py"
_SLOPE = "models/networks/softmax_network_gradient.py"
_MODEL = "models/networks/softmax_network.py"
_NOISE = "data/noise_schedule.py"


def _part(name, file, old, new, locator, *claims):
    return Mutant(name, file, old, new, locator, claims=claims)


_MODELS = [
    _part("descent: e^(-eta lambda t) on further samples", _FLOW,
          "gone = -np.expm1(t * np.log1p(-np.where(slow, contraction, 0)))",
          "gone = -np.expm1(-t * np.where(slow, contraction, 0))", "Definition F.1",
          "definition-f-1"),
    _part("descent: e^(-eta lambda t) on training samples", _FLOW,
          "return (1 - step_size * values)[None] ** t", "return np.exp(-t * step_size * values)",
          "Definition F.1", "definition-f-1"),
    _part("descent: fast directions do not alternate", _FLOW,
          "1 - (1 - contraction) ** t)", "1 - np.abs(1 - contraction) ** t)", "Definition F.1",
          "definition-f-1"),
    _part("flow: half the rate on further samples", _FLOW, "-np.expm1(-t * safe) / safe",
          "-np.expm1(-t * safe / 2) / safe", "Theorem F.2", "definition-f-1-flow"),
    _part("flow: half the rate on training samples", _FLOW, "return np.exp(-t * values[None])",
          "return np.exp(-t * values[None] / 2)", "Theorem F.2", "definition-f-1-flow"),
    _part("descent: null directions without eta", _FLOW, "gone / safe, step_size * t)",
          "gone / safe, t)", "Theorem F.2", "theorem-f-2-without-lambda"),
    _part("kernel: without 1/m", _DENSE, ".reshape(-1, m).T) / m", ".reshape(-1, m).T)",
          "Definition 3.6", "definition-3-6-three-activations"),
    _part("kernel: without the inner product", _DENSE,
          "* (X @ Z.T)[None, :, None, :]", "* (1 + 0 * X @ Z.T)[None, :, None, :]",
          "Definition 3.6", "definition-3-6-three-activations"),
    _part("kernel: plus the mean", _DENSE, "(a - means[:, :, None])", "(a + means[:, :, None])",
          "Definition 3.6", "definition-3-6-three-activations"),
    _part("tiled kernel: without the mean", _TILED, "mean = (units @ head) / W.dtype.type(m)",
          "mean = 0 * (units @ head) / W.dtype.type(m)", "Definition 3.6", "definition-3-6-tiled"),
    _part("gradient: the denominator forgotten", _SLOPE,
          "pull = pull - (jnp.sum(u * F, axis=1) / network.width)[:, None]", "pull = 1.0 * pull",
          "Claim 3.4", "claim-3-4-three-activations"),
    _part("gradient: without 1/m in the denominator", _SLOPE,
          "jnp.sum(u * F, axis=1) / network.width", "jnp.sum(u * F, axis=1)", "Claim 3.4",
          "claim-3-4-three-activations"),
    _part("gradient: twice the residual", _SLOPE, "u = F - Y", "u = 2 * (F - Y)", "Claim 3.4",
          "claim-3-4-three-activations"),
    _part("network: without the prefactor m", _MODEL, "return self.width * jax.nn.softmax(logits)",
          "return jax.nn.softmax(logits)", "Definition 3.1", "definition-3-6"),
    _part("network: prefactor 1/m of the others", _MODEL,
          "prefactor = 1 / jnp.sqrt(jnp.asarray(self.width, logits.dtype))",
          "prefactor = 1 / jnp.asarray(self.width, logits.dtype)", "Definition 3.1",
          "definition-3-6-three-activations"),
    _part("symmetric start: equal signs", _MODEL, "jnp.stack((a, -a), axis=2)",
          "jnp.stack((a, a), axis=2)", "Definition 3.7", "definition-3-7-library"),
    _part("symmetric start: units in halves", _MODEL, "jnp.repeat(half, 2, axis=1)",
          "jnp.tile(half, (1, 2))", "Definition 3.7", "definition-3-7-library"),
    _part("symmetric start: sigma squared", _MODEL, "half = sigma * jax.random",
          "half = sigma**2 * jax.random", "Definition 3.7", "definition-3-7-library"),
    _part("decay: without 1/2", _NOISE, "jnp.exp(-self.integral(t) / 2)",
          "jnp.exp(-self.integral(t))", "(3)", "forward-moments"),
    _part("variance: half of the integral", _NOISE, "-jnp.expm1(-self.integral(t))",
          "-jnp.expm1(-self.integral(t) / 2)", "(3)", "forward-moments"),
]  # fmt: skip

MUTANTS = [
    *_CONVERGENCE,
    *_PERTURBATION,
    *_CERTIFICATE,
    *_LIMIT,
    *_REGRESSION,
    *_MODELS,
    Mutant(
        "smallest eigenvalue: one monomial more",
        "bounds/optimisation/gu2024_score.py",
        "math.comb(d + q, d) - 1)",
        "math.comb(d + q, d) - 2)",
        "Assumption 6.2",
        ["smallest-eigenvalue-falls"],
    ),
]
