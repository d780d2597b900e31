"""Wrong formulas of trauger2023sequence: at least one for each factor that the paper prints."""

from collections.abc import Callable

from benchmarks.mutants.mutant import Mutant


def _in(file: str, locator: str, *claims: str) -> Callable[..., Mutant]:
    def mutant(name: str, old: str, new: str, *first: str) -> Mutant:
        return Mutant(name, f"{file}.py", old, new, locator, claims=(*first, *claims))

    return mutant


_gap = _in("bounds/generalisation/generalisation_gap", "Section 2.3", "section-2-formulas")
_dudley = _in("bounds/covering/dudley", "Section 2.4", "section-2-formulas")
_maurey = _in("bounds/covering/maurey", "Lemma 3.1", "section-3-formulas")
_greedy = _in(
    "bounds/covering/greedy_cover",
    "Lemmas 3.3 and 3.6",
    "lemma-3-6",
    "greedy-cover",
    "lemma-3-6-distance",
)
_cover = _in("bounds/covering/trauger2023_cover", "Lemmas 3.3, 3.4 and 3.6", "section-3-formulas")
_edelman = _in(
    "bounds/covering/edelman2022_cover", "Lemma 3.5", "section-3-formulas", "appendix-a-rows"
)
_counting = _in("bounds/covering/parameter_counting", "Section 2.5", "section-4-1-formulas")
_single = _in("bounds/generalisation/trauger2023_single", "Theorem 4.1", "section-4-1-formulas")
_allocation = _in("bounds/covering/trauger2023_allocation", "Lemma E.1", "lemma-e-1-kkt")
_deep = _in(
    "bounds/generalisation/trauger2023_deep",
    "Theorem 4.2",
    "section-4-2-formulas",
    "theorem-4-2",
    "theorem-4-2-parts",
)
_recursion = _in(
    "bounds/generalisation/trauger2023_deep",
    "Proof of Theorem 4.2",
    "theorem-4-2-parts",
    "section-4-3-trade",
)
_masked = _in(
    "bounds/generalisation/trauger2023_masked",
    "Theorem 5.1",
    "section-4-2-formulas",
    "theorem-5-1-contraction",
)
_loss = _in(
    "bounds/generalisation/trauger2023_masked",
    "Section 5 and Appendix G",
    "section-5-clipped",
    "appendix-g-gradient",
)
_majority = _in(
    "tasks/sparse_majority/trauger2023_bounds", "Theorem 4.1 and Section 6", "section-6-formulas"
)
_network = _in("models/networks/transformer", "Section 2.6", "section-2-6-networks", "lemma-e-2")
_loss_text = _in(
    "tasks/sparse_majority/loss", "Section 6", "section-6-loss-lipschitz", "section-6-loss"
)
_layer = _in("models/networks/single_layer_transformer", "Section 4.1", "section-2-6-networks")

MUTANTS = [
    _gap("gap: R once", "turn 2 * jnp.asarray(rademacher) + 4", "turn jnp.asarray(rademacher) + 4"),
    _gap("gap: 4 c -> 3 c", "+ 4 * loss_range", "+ 3 * loss_range"),
    _gap("gap: ln(4/delta) -> ln(2/delta)", "jnp.log(4 / jnp", "jnp.log(2 / jnp"),
    _gap("gap: 2 under the root -> 1", "2 * jnp.log(4", "jnp.log(4"),
    _gap("sharp gap: 3 -> 2", "+ 3 * loss_range", "+ 2 * loss_range"),
    _gap("sharp gap: ln(2/delta) -> ln(1/delta)", "jnp.log(2 / jnp", "jnp.log(1 / jnp"),
    _gap("sharp gap: 2 m -> m", "/ (2 * size)", "/ size"),
    _gap("sharp gap: union cost dropped", " + jnp.asarray(union_cost)", ""),
    _gap("sharp gap: R once", "n 2 * jnp.asarray(rademacher) + 3", "n jnp.asarray(rademacher) + 3"),
    _dudley(
        "Dudley: c_1 = 1",
        ": (1 + math.sqrt(2)",
        ": (1.0",
        "dudley-minimum",
        "dudley-integral",
    ),
    _dudley(
        "Dudley: c_2 without the root of 2",
        "math.sqrt(2) * ",
        "",
        "dudley-integral",
        "theorem-4-1",
    ),
    _dudley("Dudley: 12 -> 6", "(4.0, 12.0)", "(4.0, 6.0)", "dudley-constants"),
    _dudley("Dudley: printed constants 1 -> 2", 'inted": (1', 'inted": (2', "bracket-table-twice"),
    _dudley("integral: no lower edge", "return high - low + root", "return high + root"),
    _dudley("integral: root of D twice", "(jnp.log((root + low) /", "(2 * jnp.log((root + low) /"),
    _dudley(
        "integral: split without (R - delta)",
        "(upper - lower)",
        "upper",
        "bracket-table-twice",
    ),
    _dudley("integral: best delta without A", "m * c_1**2 - c_2**2 * A", "m * c_1**2 - 0 * A"),
    _dudley(
        "integral: split delta without A",
        " - c_2 * jnp.sqrt(A)",
        "",
        "bracket-table-twice",
        "section-4-1-formulas",
    ),
    _dudley("integral: delta beyond R allowed", "(room > 0) & (best < radius)", "(room > 0)"),
    _dudley("integral: delta not counted", "return c_1 * delta + c_2", "return c_2"),
    _dudley("chain: 2 / m -> 1 / m", "jnp.sqrt(2 * jnp.where(pays", "jnp.sqrt(jnp.where(pays"),
    _dudley("chain: one of two levels", "(ratios[:, None] + 1) * level", "ratios[:, None] * level"),
    _dudley("chain: last level not counted", "jnp.min(levels + jnp.cumsum", "jnp.min(jnp.cumsum"),
    _dudley("chain: levels of any entropy pay", "(m, radius.dtype) / 2", "(m, radius.dtype) / 20"),
    _maurey("Maurey: gamma for gamma^2", "else jnp.asarray(gamma) ** 2", "else jnp.asarray(gamma)"),
    _maurey("Maurey: f not taken off", " - jnp.asarray(norm) ** 2) / k", ") / k", "lemma-3-1"),
    _maurey("Maurey: b for b^2", "jnp.asarray(b) ** 2", "jnp.asarray(b)"),
    _maurey("Maurey: 1 / 2k for 1 / k", "** 2) / k", "** 2) / (2 * k)", "lemma-3-1"),
    _maurey("Maurey: the sampler's scale 2 / k", "toms / k", "toms / (k / 2)", "lemma-3-1-sampler"),
    _maurey("Maurey: the worst atom", "t = int(np.argmin", "t = int(np.argmax", "lemma-3-1-greedy"),
    _greedy("greedy: first error 1/2", "np.full(steps, 0.25)", "np.full(steps, 0.5)"),
    _greedy("greedy: one step fewer", "il(ratio**2) - 3", "il(ratio**2) - 4", "lemma-3-6-distance"),
    _greedy("greedy: no step below ratio 2", "f ratio <= ", "f ratio <= 1.", "lemma-3-6-distance"),
    _greedy("greedy: Maurey's count", "ath.ceil(ratio**2) - 3", "ath.ceil(ratio**2)", "lemma-3-6"),
    _greedy("greedy: first step 1/4", "or error in [0.", "or error in [0.2", "lemma-3-6-distance"),
    _cover("cover (1,1): signs forgotten", "math.log(2 * d * k +", "math.log(d * k +", "lemma-3-6"),
    _cover("cover (1,1): without d", "math.log(2 * d * k + 1)", "math.log(2 * k + 1)", "lemma-3-6"),
    _cover("cover: norms not squared", "* B_x) ** 2\n    if", "* B_x)\n    if"),
    _cover(
        "cover: B_x not squared",
        "(jnp.asarray(norm) * B_x) ** 2",
        "jnp.asarray(norm) ** 2 * B_x",
    ),
    _cover(
        "cover (1,inf): without d",
        "(d * math.log(2 * k + 1)",
        "math.log(2 * k + 1",
        "lemma-3-3",
    ),
    _cover("cover (1,inf): signs forgotten", "d * math.log(2 * k ", "d * math.log(k ", "lemma-3-3"),
    _cover("cover (2,1) printed: without k", "math.log(d * k)", "math.log(d)"),
    _cover("cover (2,1): k for d points", "an2022_cover(norm, B_x, d", "an2022_cover(norm, B_x, 1"),
    _cover("mapping: one row", "array(scalar_entropy) * k", "array(scalar_entropy)", "appendix-a"),
    _cover("volumes: k / 2", "return k * jnp.log", "return k / 2 * jnp.log"),
    _edelman("log T: signs forgotten", "2 * k * points + 1", "k * points + 1"),
    _edelman("log T: without k", "2 * k * points + 1", "2 * points + 1"),
    _edelman("log T, one row: signs forgotten", "jnp.asarray(2 * points +", "jnp.asarray(points +"),
    _edelman("log T: without theta", "jnp.min(grid * size + lengths)", "jnp.min(size + lengths)"),
    _edelman("log T: lengths free", "grid * size + lengths", "grid * size"),
    _edelman(
        "log T: norm not squared",
        "(jnp.asarray(norm) * B_x) ** ",
        "jnp.asarray(norm) * B_x**",
    ),
    _edelman("perceptron: steps of half the length", "psilon / largest", "psilon / largest / 2.5"),
    _edelman("perceptron: stops at 2 epsilon", "<= epsilon:", "<= 2 * epsilon:", "lemma-3-5"),
    _counting("parameters: 2 -> 1 cells", "(4.0 if factored else 2.0", "(4.0 if factored else 1.0"),
    _counting("parameters: B_x^3 -> B_x^2", "jnp.asarray(B_x) ** 3", "jnp.asarray(B_x) ** 2"),
    _counting("parameters: without ln 2d", "math.log(2 * d) + parameters", "parameters"),
    _counting("parameters: 2 B -> B", "return 2 * B * dudley_chain", "return B * dudley_chain"),
    _single("softmax: 2 -> 1 as printed", 'nstants == "sharp" else 2', 'nstants == "sharp" else 1'),
    _single("softmax: 1 -> 1/2", 'return 1.0 if constants == "s', 'return 0.5 if constants == "s'),
    _single("bracket: B_x^2 -> B_x", "scale = kappa * B_x**2", "scale = kappa * B_x"),
    _single("bracket: without 1 +", "scale * (1 + jnp.log", "scale * (jnp.log"),
    _single("bracket: ln 2d -> ln d", "B_x * jnp.sqrt(math.log(2 * d", "B_x * jnp.sqrt(math.log(d"),
    _single("bracket: without B_x before the root", "+ B_x * jnp.sqrt(math.l", "+ jnp.sqrt(math.l"),
    _single("minimised bracket: B_x^4 -> B_x^2", "2 * B_x**4 * C\n    s", "2 * B_x**2 * C\n    s"),
    _single("minimised bracket: ln 2d -> ln d", "A, D = math.log(2 * d)", "A, D = math.log(d)"),
    _single("bound: 2 B -> B", "return 2 * B * jnp.minimum", "return B * jnp.minimum"),
    _single("bound: B_x^4 -> B_x^2", "D = kappa**2 * B_x**4 * C\n", "D = kappa**2 * B_x**2 * C\n"),
    _single("bound: without ln 2d", "dudley_integral(math.log(2 * d), ", "dudley_integral(1e-9, "),
    _single("sharp bound: 2 B -> B", "return 2 * B * dudley_chain", "return B * dudley_chain"),
    _single("sharp bound: b^2 -> b", "(kappa * b * B_x) ** 2", "kappa * b * B_x**2"),
    _single("sharp bound: without ln 2d", "lambda epsilon: math.log(2 * d) + ", "lambda epsilon: "),
    _single("alpha 4.1.1: 2 -> 1 under the root", "math.sqrt(2 * math.log(", "math.sqrt(math.log("),
    _single("alpha 4.1.1: d for d^2", "2 * d**2 + 1))\n    C", "2 * d + 1))\n    C"),
    _single("alpha: without kappa", "return trauger2023_softmax_lipschitz(constants) *", "return"),
    _allocation(
        "allocation: exponents 1/3 and 2/3 swapped",
        " jnp.cbrt(beta) ** 2",
        "* 2 * jnp.cbrt(beta)",
    ),
    _allocation("allocation: gamma^2", "gamma**3, jnp", "gamma**2, jnp"),
    _allocation("allocation: resolutions times 2", "jnp.cbrt(C / beta)", "2 * jnp.cbrt(C / beta)"),
    _allocation("allocation: residual of eps^2", "beta * resolution**3)", "beta * resolution**2)"),
    _deep("alpha_i: 1 + 4 B -> 1 + 2 B", "hitz * B_c * B_v * (1 + 2 *", "hitz * B_c * B_v * (1 +"),
    _deep("alpha_i: without L_sigma", "growth = lipschitz * B_c * B_v", "growth = B_c * B_v"),
    _deep("alpha_i: without B_v", "growth = lipschitz * B_c * B_v", "growth = lipschitz * B_c"),
    _deep("alpha_i: from layer i on", "jnp.arange(L - 1, -1, -1,", "jnp.arange(L, 0, -1,"),
    _deep("gamma: 2 L B B -> L B B", "inner = kappa * lipschitz * B_c", "inner = lipschitz * B_c"),
    _deep("gamma: C_x^(1/3) -> C_1^(1/3)", "(heavy * root(inner", "(own * root(inner"),
    _deep("gamma: without the readout", "own_first = 1 + root(third)", "own_first = root(third)"),
    _deep("gamma: alpha_1 dropped from W_QK", "root(inner * alpha[0]) + own", "root(inner) + own"),
    _deep("corrected gamma: without W_c", "1 + root(alpha[0]) + root(alpha[0", "1 + root(alpha[0"),
    _deep("tau: third term B_c for B_v", 'B_v if constants == "printed" else B_c', "B_c"),
    _deep("eta: without alpha_i^(2/3)", "own * jnp.sum(root(alpha[1:]) + roo", "own * jnp.sum(roo"),
    _deep("cost: exponent 2/3 -> 1/3", "urn jnp.cbrt(cost * B_w) ** 2", "urn jnp.cbrt(cost * B_w)"),
    _deep("cost: without B_w", "jnp.cbrt(cost * B_w)", "jnp.cbrt(cost)"),
    _deep("entropy: cube -> square", "+ eta) ** 3", "+ eta) ** 2"),
    _deep("complexity: eps^2 -> eps", "entropy / epsilon**2, m, rad", "entropy / epsilon, m, rad"),
    _recursion(
        "recursion: alpha without heads' sum",
        "= jnp.sum",
        "= jnp.max",
        "theorem-4-2-amplification",
    ),
    _recursion(
        "recursion: 2 kappa -> kappa",
        "2 * kappa * q",
        "kappa * q",
        "theorem-4-2-amplification",
    ),
    _recursion("recursion: B_x^2 -> B_x", "kappa * first**2 * outer", "kappa * first * outer"),
    _recursion("recursion: W_QK without W_v", "outer * v[layer, head]", "outer"),
    _recursion("recursion: W_v without W_c", "er] * lipschitz * c[layer, head]", "er] * lipschitz"),
    _recursion("recursion: reach of W_c 1", "r], lipschitz", "r], 1.0", "theorem-4-2-output-reach"),
    _recursion(
        "recursion: reach of the first W_v 1",
        "ter, first",
        "ter, 1.0",
        "theorem-4-2-first-values",
    ),
    _masked("masked: K -> sqrt(K)", "else K\n", "else math.sqrt(K)\n", "theorem-5-1-contraction"),
    _masked("masked: printed sqrt(K) -> K", "math.sqrt(K) if", "K if"),
    _masked("masked: cross-entropy 2 -> 1", "OPY_LIPSCHITZ = 2", "OPY_LIPSCHITZ = 1", "appendix-g"),
    _masked(
        "masked: costs not doubled",
        "=CROSS_ENTROPY_LIPSCHITZ * ",
        "=",
        "theorem-5-1-recursion",
    ),
    _loss(
        "cross-entropy: not clipped",
        "np.minimum(jax.nn.logsumexp(scores) - scores[word], ceiling)",
        "ax.nn.logsumexp(scores) - scores[word]",
    ),
    _loss("cross-entropy: half the score", "- scores[word]", "- scores[word] / 2"),
    _majority("majority: bias once", "cut + 2 * run.bias", "cut + run.bias"),
    _majority("majority: constant dropped", "un.readout) * inside + fixed", "un.readout) * inside"),
    _majority(
        "majority: range without the bias", "(pooled + run.bias) + run.co", "pooled + run.co"
    ),
    _majority(
        "majority: printed rows cut",
        "where(printed, network, jnp.minimum(network, pooled)",
        "minimum(network, pooled",
    ),
    _majority("majority: one head", "network = jnp.sum(heads(", "network = jnp.max(heads("),
    _majority(
        "majority: no cut",
        "jnp.where(printed, network, jnp.minimum(network, pooled))",
        "network",
    ),
    _network(
        "network: rows not projected",
        " / jnp.where(outside, jnp.sqrt(jnp.where(outside, square, 1)), 1)",
        "",
    ),
    _network(
        "network: last projection dropped",
        'pi_norm(jnp.einsum("hsk,hkd->sd", hidden, self.output)',
        'jnp.einsum("hsk,hkd->sd", hidden, self.output',
    ),
    _network("network: softmax over queries", "softmax(logits, axis=-1", "softmax(logits, axis=-2"),
    _loss_text("released loss: sum of the two", "return jnp.mean(logist", "return jnp.sum(logist"),
    _layer("layer: keys and queries exchanged", "self.query_key @ x_cls", "x_cls @ self.query_key"),
    _layer(
        "layer: tokens summed",
        "ax.nn.softmax(self.query_key @ x_cls @ X.T, axis=-1",
        "np.exp(self.query_key @ x_cls @ X.T",
    ),
]
