"""Mutants of the formulas of deora2023optimization."""

from benchmarks.mutants.mutant import Mutant

_MODEL = "bounds/optimisation/deora2023_model.py"
_LOSS = "bounds/optimisation/deora2023_loss.py"
_TRAINING = "bounds/optimisation/deora2023_training.py"
_EXPONENTIAL = "bounds/optimisation/deora2023_exponential.py"
_START = "bounds/optimisation/deora2023_initialisation.py"
_MIXTURE = "bounds/optimisation/deora2023_mixture.py"
_GAP = "bounds/generalisation/deora2023_generalisation.py"
_HEADS = "models/attention/multi_head.py"
_SLOPES = "models/attention/multi_head_derivatives.py"


def _group(file, locator, claim, changes):
    """Mutants of one statement: name to old and new text."""
    return [
        Mutant(name, file, old, new, locator=locator, claims=[claim])
        for name, (old, new) in changes.items()
    ]


MUTANTS = [
    *_group(
        _MODEL,
        "Proposition 1",
        "formula-proposition-1",
        {
            "gradient: 2 R^2 -> R^2": (
                "return 2 * R**2 * jnp.sum(reach)",
                "return R**2 * jnp.sum(reach)",
            ),
            "gradient: R^2 -> R": (
                "return 2 * R**2 * jnp.sum(reach)",
                "return 2 * R * jnp.sum(reach)",
            ),
            "gradient: sqrt(T) -> T": (
                "jnp.sum(reach) + math.sqrt(tokens) * R",
                "jnp.sum(reach) + tokens * R",
            ),
            "Hessian: 6 d -> 6 sqrt(d)": (
                "return 6 * d * R**2 * m**2",
                "return 6 * math.sqrt(d) * R**2 * m**2",
            ),
            "Hessian: 6 -> 3": ("return 6 * d * R**2 * m**2", "return 3 * d * R**2 * m**2"),
            "Hessian: m^2 -> m": ("R**2 * m**2 * total", "R**2 * m * total"),
            "Hessian: 2 sqrt(T d) -> sqrt(T d)": (
                "2 * root * math.sqrt(d) * R**2 * m",
                "root * math.sqrt(d) * R**2 * m",
            ),
            "Hessian: sqrt(T d) -> sqrt(T)": (
                "2 * root * math.sqrt(d) * R**2 * m",
                "2 * root * R**2 * m",
            ),
            "heads: 1 / sqrt(H) -> 1 / H": ("/ math.sqrt(U.shape[0])", "/ U.shape[0]"),
            "heads: largest -> mean": (
                "jnp.max(jax.vmap(lambda head",
                "jnp.mean(jax.vmap(lambda head",
            ),
        },
    ),
    *_group(
        _MODEL,
        "Proposition 1, sharpened",
        "formula-proposition-1-sharp",
        {
            "third moment less 5 %": ("4 / (3 * math.sqrt(3))", "0.95 * 4 / (3 * math.sqrt(3))"),
            "dimension-free: 2 R^4 -> 0.7 R^4": (
                "return 2 * R**4 * total",
                "return 0.7 * R**4 * total",
            ),
            "sharp Hessian: 4 T R^6 -> T R^6": (
                "corner**2 + 4 * (root",
                "corner**2 + 1 * (root",
            ),
            "sharp gradient without the 1": ("jnp.maximum(1, R**2 * share", "(R**2 * share"),
            "pooled: T^2 -> T": ("Decoder.POOLED: T * T", "Decoder.POOLED: T"),
        },
    ),
    *_group(
        _LOSS,
        "Corollary 1",
        "formula-corollary-1",
        {
            "beta_1: 2 -> 1": ("else 2 * reach + 1\n", "else reach + 1\n"),
            "beta_1 without its 1": ("else 2 * reach + 1\n", "else 2 * reach\n"),
            "beta_1: R -> 1": ("jnp.sqrt(1.0 * T) * R * factor", "jnp.sqrt(1.0 * T) * factor"),
            "beta_3: 3 -> 1": ("(3 * side * reach + 1)", "(1 * side * reach + 1)"),
            "beta_3: sqrt(d) inside -> 1": ("(3 * side * reach + 1)", "(3 * reach + 1)"),
            "beta_3: 2 sqrt(T d) -> sqrt(T d)": ("2 * root * side * R**3", "root * side * R**3"),
            "beta_3: R^3 -> R^2": ("2 * root * side * R**3", "2 * root * side * R**2"),
            "beta_2: beta_1^2 / 4 -> / 8": ("slope**2 / 4", "slope**2 / 8"),
            "beta_2: sqrt(H) -> H": ("curvature / jnp.sqrt(1.0 * H)", "curvature / H"),
            "Proposition 4: 4/3 -> 8/7": ("else 1 / (1 - c / 2)", "else 1 / (1 - c / 4)"),
        },
    ),
    *_group(
        _LOSS,
        "Corollary 1, sharpened",
        "formula-theorem-1-sharp",
        {
            "sharp beta_1 without the 1": ("jnp.maximum(1, reach) if", "reach if"),
            "sharp beta_3: s^2 + 4 -> s^2 + 1": ("jnp.sqrt(s**2 + 4)", "jnp.sqrt(s**2 + 1)"),
            "dimension-free beta_3: 2 -> 1": (
                "return root * R**3 * (2 * reach + 1)",
                "return root * R**3 * (reach + 1)",
            ),
            "sharp quasi-convexity: half the angle": (
                "jnp.cos(jnp.sqrt(c) / 2)",
                "jnp.cos(jnp.sqrt(c) / 4)",
            ),
        },
    ),
    *_group(
        _TRAINING,
        "Theorem 1 and section 6.1",
        "formula-theorem-1",
        {
            "heads factor: 18 -> 2": ("else 2 * radius**2", "else 2 * radius**0"),
            "radius: 3 -> 2": ("        return 3.0\n", "        return 2.0\n"),
            "head norm without the target's": (
                "(constants, c) * distance + largest_head)",
                "(constants, c) * distance)",
            ),
            "heads: D^2 -> D": (
                "jnp.asarray(distance) ** 2) ** 2), 1)",
                "jnp.asarray(distance)) ** 2), 1)",
            ),
            "rho: alpha^2 -> alpha": ("T * R**2 / 4) * alpha**2", "T * R**2 / 4) * alpha"),
            "rho: T R^2 / 4 -> / 16": ("T * R**2 / 4) * alpha**2", "T * R**2 / 16) * alpha**2"),
            "rho: 3 sqrt(T) R^3 -> sqrt(T) R^3": (
                "(3 * root * R**3 * reach",
                "(root * R**3 * reach",
            ),
            "rho: 2 sqrt(T) R -> 0": ("R**3 * reach + 2 * root * R)", "R**3 * reach)"),
            "rho: sqrt(H) -> H": ("jnp.sqrt(1.0 * H) + T", "H + T"),
            "step: K L -> L": ("square / (steps * target_loss)", "square / target_loss"),
            "step without the start's limit": (
                '"start_loss": square / start_loss',
                '"start_loss": square',
            ),
            "(4): 5/4 -> 1/2": ("else (2.0, 1.25)", "else (2.0, 0.5)"),
            "(4): 2 -> 1": ("else (2.0, 1.25)", "else (1.0, 1.25)"),
            "(4) without K": ("/ (step_size * steps)\n", "/ step_size\n"),
            "distance from the start: 4 D -> 3 D": (
                "return near + distance, near",
                "return near, near",
            ),
        },
    ),
    *_group(
        _TRAINING,
        "Theorem 1, sharpened",
        "formula-theorem-1-sharp",
        {
            "sharp radius: 2 a -> a": ("3 + 2 * w / math.sin(w)", "3 + 1 * w / math.sin(w)"),
            "sharp heads: r^2 / c -> r / c": ("return radius**2 / c if", "return radius / c if"),
            "sharp path: 3 - 2 b -> 1 - b": ("(3 - 2 * b) / (2 * b))", "(1 - b) / (2 * b))"),
        },
    ),
    *_group(
        _EXPONENTIAL,
        "Theorem 1, exponential form",
        "formula-theorem-1-sharp",
        {
            "radius: 1 + 2 q -> 1 + q": ("math.sqrt(1 + 2 * growth)", "math.sqrt(1 + growth)"),
            "heads: 2 log q -> 4 log q": ("(2 * math.log(growth))", "(4 * math.log(growth))"),
            "loss: D^2 / 2 -> D^2 / 4": ("(2 * step_size * steps)", "(4 * step_size * steps)"),
        },
    ),
    *_group(
        _GAP,
        "Theorem 2 and section 6.2",
        "formula-theorem-2",
        {
            "stability heads: 72 -> 18": (
                "(setting, 72.0, constants)",
                "(setting, 18.0, constants)",
            ),
            "amplification: 2 -> 1": ("        return 2.0\n", "        return 1.0\n"),
            "regret: 9/4 -> 1/2": ("else (2.0, 2.25)", "else (2.0, 0.5)"),
            "regret: 2 -> 1": ("else (2.0, 2.25)", "else (1.0, 2.25)"),
            "regret: D^2 -> D": (
                "path * jnp.asarray(distance) ** 2 / step_size",
                "path * jnp.asarray(distance) / step_size",
            ),
            "stability: 1/n -> 1/n^2": ("beta_1 / n * regret", "beta_1 / n**2 * regret"),
            "Lemma 3: 2 G -> G": ("2 * lipschitz * stability", "1 * lipschitz * stability"),
            "(5): 4 -> 2": (
                "return 2 * deora2023_amplification(constants)",
                "return 1 * deora2023_amplification(constants)",
            ),
        },
    ),
    *_group(
        _GAP,
        "Theorem 2, sharpened",
        "formula-theorem-2-sharp",
        {
            "sharp stability heads / 11": (
                'factor, "sharp", STABILITY_CURVATURE)',
                'factor / 11**0.5, "sharp", STABILITY_CURVATURE)',
            ),
            "sharp amplification -> 1": (
                "math.exp(2 * peak * (loss + path) / factor)",
                "math.exp(0 * peak * (loss + path) / factor)",
            ),
            "sharp regret without the start": (
                "(3 - 2 * b) / (2 * b) + 1",
                "(3 - 2 * b) / (2 * b)",
            ),
            "sharp: c = .3 -> .6": ("STABILITY_CURVATURE = 0.3", "STABILITY_CURVATURE = 0.6"),
        },
    ),
    *_group(
        _START,
        "Proposition 7 and Corollary 2",
        "formula-corollary-2",
        {
            "g_0: 2 B_Phi -> B_Phi": ("return (2 * B_Phi + jnp.log", "return (B_Phi + jnp.log"),
            "g_0 without the logarithm": (
                "jnp.log(1 / jnp.asarray(epsilon))) / margin",
                "0 * jnp.log(1 / jnp.asarray(epsilon))) / margin",
            ),
            "target heads: 2 B_Phi -> 4 B_Phi": ("(2 * start.B_Phi)", "(4 * start.B_Phi)"),
            "target's head without B_2": ("distance, self.B_2 + distance)", "distance, distance)"),
            "target loss: c^2 / 2 -> c^2 / 4": ("(c * norm) ** 2 / 2 *", "(c * norm) ** 2 / 4 *"),
            "target loss: sqrt(H) -> H": ("curvature / jnp.sqrt(1.0 * H)", "curvature / H"),
            "heads of the descent left out": (
                "jnp.maximum(target, descent)",
                "target + 0 * descent",
            ),
            "step: 4 B_Phi^2 -> B_Phi^2": (
                "first = 4 * jnp.asarray(B_Phi) ** 2",
                "first = jnp.asarray(B_Phi) ** 2",
            ),
            "step: margin^2 -> margin": ("(margin**2 * jnp.logaddexp", "(margin * jnp.logaddexp"),
            "training: 5/4 -> 1/2": ("5 * distance**2 / (4 *", "2 * distance**2 / (4 *"),
            "training: 2 / K -> 1 / K": (
                "return 2 / jnp.asarray(steps)",
                "return 1 / jnp.asarray(steps)",
            ),
            "gap: 17 -> 1.7": ("return 17 * distance**2", "return 1.7 * distance**2"),
            "gap without n": (
                "return 17 * distance**2 / (step_size * n)",
                "return 17 * distance**2 / step_size",
            ),
        },
    ),
    *_group(
        _MIXTURE,
        "Assumption 3, Lemma 2 and Proposition 2",
        "formula-proposition-2",
        {
            "token radius without 2 Z_nu / M": ("Z**2 + 2 * Z_nu / M)", "Z**2)"),
            "token radius: 2 Z_nu -> Z_nu": ("Z**2 + 2 * Z_nu / M)", "Z**2 + Z_nu / M)"),
            "slope: zeta/2 -> zeta/3": ("zeta / (2.0 if", "zeta / (3.0 if"),
            "(6): sqrt(d/n) -> sqrt(d)/n": ("(_root(d / n) +", "(_root(d) / n +"),
            "(6): 2 S + Z -> S + Z": ("C * (2 * S + Z) *", "C * (S + Z) *"),
            "(6) without the tail": (
                "+ _root(jnp.log(1 / jnp.asarray(delta)) / n))",
                "+ 0 * _root(jnp.log(1 / jnp.asarray(delta)) / n))",
            ),
            "P1: S -> S/3": ('constants == "sharp" else S\n', 'constants == "sharp" else S / 3\n'),
            "P1: sqrt(T) -> 1": ("return _root(T) * (signal + P)", "return signal + P"),
            "P2: 2 log -> log": ("jnp.sqrt(2 * jnp.log(sides * n", "jnp.sqrt(jnp.log(sides * n"),
            "P2: R -> 1": ("return _root(T) * R * size * tail", "return _root(T) * size * tail"),
            "(7): 7 -> 5": ("- 7 * bar * S**2", "- 5 * bar * S**2"),
            "(7): 12 -> 6": ("- 12 * bar**2", "- 6 * bar**2"),
            "(7): 16 -> 0": ("- 16 * bar**3 / S**2", "- 0 * bar**3 / S**2"),
            "(7): zeta S^4 -> S^4": ("inside = zeta * S**4", "inside = S**4"),
            "(7): 4 -> 2": ("inside / (4 * _root(2 *", "inside / (2 * _root(2 *"),
            "(7): T^(5/2) -> T^2": ("P * _root(T) ** 5 * (S", "P * _root(T) ** 4 * (S"),
            "(7): larger noise -> Z_mu": (
                "jnp.maximum(jnp.asarray(Z_mu), Z_nu)",
                "jnp.asarray(Z_mu) + 0 * Z_nu",
            ),
            "gamma_lin: 2 (1 - zeta) -> 1 - zeta": ("(zeta - 2 * (1 - zeta)", "(zeta - (1 - zeta)"),
            "P3's heads: R^4 -> R^3": ("root = C * R**4 * T", "root = C * R**3 * T"),
        },
    ),
    *_group(
        _MIXTURE,
        "Proposition 3",
        "formula-proposition-3",
        {
            "Gamma: 8/3 -> 2": ("return 8 * norm / (3 * S**2)", "return 6 * norm / (3 * S**2)"),
            "gamma_attn: 2 eps -> eps": (
                "(1 - epsilon - 2 * epsilon * noise)",
                "(1 - epsilon - epsilon * noise)",
            ),
            "gamma_attn: Z_mu / S^2 -> Z_mu": ("else Z_mu / S**2\n", "else Z_mu\n"),
            "section 7: Z_mu / S -> Z_mu": ("noise = Z_mu / S if", "noise = Z_mu if"),
        },
    ),
    *_group(
        _MIXTURE,
        "Propositions 2 and 3, sharpened",
        "formula-proposition-2-sharp",
        {
            "sharp P1: 2 sqrt 2 -> 4 sqrt 2": ("(2 * math.sqrt(2)) if", "(4 * math.sqrt(2)) if"),
            "sharp Gamma: 3 Z_mu -> Z_mu": ("(Z_nu + 3 * Z_mu)", "(Z_nu + Z_mu)"),
            "sharp gamma_star: R^3 -> R^2": (
                "deora2023_token_radius(S, Z, Z_nu, M) ** 3",
                "deora2023_token_radius(S, Z, Z_nu, M) ** 2",
            ),
            "crossover: zeta^2 -> zeta": ("(_root(T) * zeta**2))", "(_root(T) * zeta))"),
        },
    ),
    *_group(
        _HEADS,
        "Section 2, the model",
        "lemma-1-gradient",
        {
            "model: 1 / sqrt(H) -> 1 / H": (
                "total / jnp.sqrt(jnp.asarray(self.heads, total.dtype))",
                "total / jnp.asarray(self.heads, total.dtype)",
            ),
            "model: softmax over the queries": (
                "X, self.W, X), axis=-1)",
                "X, self.W, X), axis=-2)",
            ),
            "model: W transposed": ('"td,hde,se->hts", X, self.W', '"td,hed,se->hts", X, self.W'),
        },
    ),
    Mutant(
        "pooled output: sum -> mean",
        _HEADS,
        "jnp.sum(mixed, axis=1))",
        "jnp.mean(mixed, axis=1))",
        locator="Footnote * of section 2",
        claims=["proposition-1-pooled"],
    ),
    *_group(
        _SLOPES,
        "Lemma 1",
        "lemma-1-closed-forms",
        {
            "gradient in W: softmax' -> diag": (
                "weights = attention * _centred(attention, values)\n    W =",
                "weights = attention * values\n    W =",
            ),
            "second derivative without its third term": (
                "- along_mean * values - value_mean * along",
                "- along_mean * values",
            ),
            "mixed derivative without a": (
                "weights = a[:, None] * attention",
                "weights = attention",
            ),
            "Hessian form: 2 Cov -> Cov": ("summed = 2 * moved", "summed = moved"),
        },
    ),
    *_group(
        "optim/one_step.py",
        "Lemma 2",
        "lemma-2-library",
        {"first step: slope 1/2 -> 1": ("axis=1), axis=0) / 2", "axis=1), axis=0)")},
    ),
    Mutant(
        "head scaling: the square root of H for attention",
        "optim/head_scaling.py",
        "step, heads * step)",
        "step, heads**0.5 * step)",
        "beyond the paper",
        ["head-scaling-is-exact"],
    ),
    Mutant(
        "head scaling: decoders start at 1 / H",
        "optim/head_scaling.py",
        "heads**-0.5",
        "heads**-1.0",
        "beyond the paper",
        ["head-scaling-is-exact"],
    ),
]
