"""Wrong formulas of the bounds that can be non-vacuous."""

from collections.abc import Callable

from benchmarks.mutants.mutant import Mutant


def _in(file: str, locator: str, *claims: str) -> Callable[..., Mutant]:
    def mutant(name: str, old: str, new: str, *first: str) -> Mutant:
        path = f"bounds/generalisation/{file}.py"
        return Mutant(name, path, old, new, locator, claims=(*first, *claims))

    return mutant


_inverse = _in("kl_inverse", "Inverse divergence", "outward-inverse")
_tail = _in("binomial_tail", "Held-out", "held-out-coverage")
_files = _in("compression_bound", "Codes", "compression-coverage")
_code = _in("occam_code", "Codes", "decoded-weights")
_coder = _in("arithmetic_code", "Length", "code-length")
_bayes = _in("pac_bayes_kl", "PAC-Bayes", "divergence-moment")
_gauss = _in("gaussian_weights", "Divergence", "gaussian-divergence")
_token = _in("token_bound", "Tokens", "bernstein-step")


def _at(path: str, locator: str, *claims: str) -> Callable[..., Mutant]:
    def mutant(name: str, old: str, new: str, *first: str) -> Mutant:
        return Mutant(name, f"bounds/{path}.py", old, new, locator, claims=(*first, *claims))

    return mutant


_softmax = _at("attention/pac_bayes_margin", "Margins", "perturbed-average")
_hull = _at("covering/sample_complexity", "Margins", "hull-cover")
_met = _at("margins/sample_complexity", "Margins", "met-below-largest", "complexity-on-sample")
_noise = _at("margins/pac_bayes_margin", "Margins", "noise-certificate")
_bayes_margin = _at("margins/pac_bayes_margin", "Margins", "margin-coverage")
_cover_margin = _at("margins/margin_bounds", "Margins", "margin-coverage")
_local = _at("margins/local_margin_bound", "Margins")
_sample_margins = _at("margins/margin_bounds", "Margins", "ramp-below-hinge")

MUTANTS = (
    _inverse("rounded inward", "- _SLACK * (abs(heads)", "+ Decimal(1) * (abs(heads)"),
    _inverse("the tails without their weight", "other * (other /", "(other /"),
    _inverse("divergence in the other direction", "Q * (Q / P).ln()", "P * (P / Q).ln()"),
    _tail(
        "one error less in the tail",
        "_log_choose(n, errors) + errors",
        "_log_choose(n, errors) + (errors - 1)",
    ),
    _tail("ratios of the term after", "odds * k /", "odds * (k - 1) /"),
    _tail("a base of 4 for bits", "Decimal(2).ln()", "Decimal(4).ln()", "compression-coverage"),
    _tail(
        "a third of the level",
        "return Decimal(delta).ln()",
        "return (Decimal(delta) / 3).ln()",
        "exact-limits-attained",
    ),
    _tail(
        "the tail without its first term",
        "return first + total.ln()",
        "return first + (total - 1).ln() if errors else first",
    ),
    _files("nine tenths of the bits", "(bits * math.log(2)", "(0.9 * bits * math.log(2)"),
    _files("delta squared", "- math.log(delta)) *", "- 2 * math.log(delta)) *"),
    _files("delta left out", "- math.log(delta)) *", ") *"),
    _code("truncated in place of rounded", "np.rint(w", "np.trunc(w"),
    _code("levels off by one in the decoder", "2 * levels + 1) - levels", "2 * levels + 1) - 1"),
    _code("the next larger scale", ">= least:", "> 1.1 * least:"),
    _coder("counts grow by one in place of two", "self.tree[place] += 2", "self.tree[place] += 1"),
    _bayes("5/4 in place of 2", "math.log(2) + math.log(n)", "math.log(1.25) + math.log(n)"),
    _bayes("the root of n left out", "+ math.log(n) / 2", "+ 0 * n"),
    _bayes(
        "nothing for the divergence", "cost = nats +", "cost = 0 * nats +", "pac-bayes-coverage"
    ),
    _gauss("without the half in the square", "(2 * scales**2)", "scales**2"),
    _gauss("without the half per weight", "logs, count / 2", "logs, 0.0"),
    _gauss("the logarithm with the other sign", "- parts[2]", "+ parts[2]"),
    _token("half of the exponent", "-math.log1p(-slope) - slope", "slope**2 / 4"),
    _token("the leading term of the exponent alone", "-math.log1p(-slope) - slope", "slope**2 / 2"),
    _token(
        "the range of an unsmoothed loss",
        "(1 - alpha) * vocabulary / alpha",
        "vocabulary / alpha",
        "smoothed-range",
    ),
    _token("no deviation", "return min(math.sqrt(cost / 2)", "return 0 * min(math.sqrt(cost / 2)"),
    _softmax(
        "a fifth in place of a quarter",
        "jnp.tanh(jnp.asarray(oscillation) / 4)",
        "jnp.tanh(jnp.asarray(oscillation) / 5)",
    ),
    _softmax("the sine of the angle", "jnp.tanh(", "jnp.sin("),
    _hull("one step fewer", "jnp.ceil(ratio) - 1", "jnp.ceil(ratio) - 2"),
    _met("four times the span", "sample.diameter / 4", "sample.diameter"),
    _met("without signs and entries", "math.log(2 * d), 2", "0.0 * math.log(2 * d), 2"),
    _noise("a tenth of the threshold", "return math.sqrt(heads) * moved", "return 0.02 * moved"),
    _bayes_margin("nothing for the divergence of noisy weights", "nats = (0.5", "nats = 0 * (0.5"),
    _cover_margin("nothing for the entropy", "return below, 4 * gamma", "return below, 0 * gamma"),
    _cover_margin("a half in Pinsker's form", "cost / 2)", "cost / 4)", "kl-below-hoeffding"),
    _local(
        "a tenth of the radius of small risks",
        "jnp.sqrt(risk + 2 * psi)",
        "0.1 * jnp.sqrt(risk + 2 * psi)",
        "local-complexity-of-a-class",
    ),
    _local(
        "a tenth of the spread of small risks",
        "return 2 * complexity + spread",
        "return 2 * complexity + 0.1 * spread",
        "deviation-of-small-risks",
    ),
    _local(
        "the risk itself and not its excess",
        "jnp.where(inside, risk - deviation, 1.0)",
        "jnp.where(inside, risk, 1.0)",
        "small-risks-decide",
    ),
    _local(
        "without the deviation of small risks",
        "jnp.maximum(empirical + deviation, scaled)",
        "jnp.maximum(empirical, scaled)",
        "small-risks-decide",
    ),
    _sample_margins(
        "the hinge cut off and the ramp not", "math.inf if loss ==", "math.inf if loss !="
    ),
    _met("a third of a linear readout", "R / 2 if step", "R / 6 if step", "linear-readout"),
)
