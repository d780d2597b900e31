"""attlas: the executable atlas of attention theory.

`import attlas as at` is enough to begin; a name is imported when it is first used, and JAX with
the first name that needs it.

================================================  ================================================
Question                                          Call
================================================  ================================================
Is my lemma true, and how tight is it?            `check(claim)`, which searches as well
How do I write a lemma?                           `inequality`, `identity`, `limit`, `rate`,
                                                  `probability`, `expectation`, `existence`,
                                                  `computed`, `erratum`; `Control`, `assume`,
                                                  `Sides`, `Doubling`, `Source`
Where do its arrays lie?                          `Ball("W", 1.0)` in `domains`; `Box`, `Sphere`,
                                                  `Simplex`, `Ordered`, `Positive`, `Nonnegative`,
                                                  `Real`, `OneOf`, `Rank`, `Semidefinite`,
                                                  `Orthogonal`
How well does a method do at worst, exactly?      `enclose_worst_case(class, method, measure)`
How do I state a bound on it?                     `worst_case`; `SmoothConvex`, `LipschitzConvex`,
                                                  `Convex`; `GradientDescent`, `HeavyBall`,
                                                  `FastGradient`, `ProximalPoint`
Can a search break it? Does a witness still?      `challenge(claim)`, `replay(claim, witness)`
Would the check notice a wrong constant?          `power(claim)`
What do the five papers claim?                    `find_claims(["lemma-12"])`
Which tokens does training select?                `attention_svm`, `lp_svm`, `kernel_svm`
How do I train with mirror descent?               `mirror_descent` (for optax), `fit`
How far is a direction from the SVM's?            `direction_divergence`, `bregman`
Do my attention rows concentrate?                 `concentration(weights)`
How sharp is this minimum?                        `hessian_extremes`
What is the tangent kernel?                       `ntk_gram`, `softmax_ntk`
How complex is this class?                        `rademacher_complexity`
Which bound on the gap is smallest, is it         `compare_bounds`
non-vacuous, and from how many samples?           with `TransformerWeights`
What is certified by a test set, a file, draws    `held_out_bound`, `compression_bound`,
of weights, the tokens of a stream?               `pac_bayes_kl`, `token_bound`
Which of several certificates is least?           `union(...)`, which pays for the choice
How often is my model wrong on new examples?      `certify(losses)`, of one model or several
How do I run an experiment, and read what it      `run("direction", scale="smoke")`,
gave?                                             `load("direction")`
What do the papers say of my trained model?       `audit("folder", sequences)`; `load_model`
                                                  reads it
================================================  ================================================

Arrays may be lists, NumPy, JAX or torch; what cannot be read is a `UserError` of one line. Solvers
and bounds compute in float64 and leave JAX's precision as it is (formulas of bounds follow arrays
of JAX); models, kernels and measures follow the precision of what they are given.

All else is imported from the folder whose verb fits: `attlas.data` generates, `attlas.models`
apply, `attlas.bounds` bound, `attlas.measures` measure.

Examples:
    >>> import attlas as at
    >>> at.check("lemma-12").verdict.outcome.value
    'SUPPORTED'
"""

from typing import TYPE_CHECKING

from attlas.core.names import lazy_names

if TYPE_CHECKING:
    from attlas.audit.audit import audit
    from attlas.audit.certify import certify
    from attlas.bounds.comparison.compare import compare_bounds
    from attlas.bounds.comparison.transformer_weights import TransformerWeights
    from attlas.bounds.generalisation.compression_bound import compression_bound
    from attlas.bounds.generalisation.held_out_bound import held_out_bound
    from attlas.bounds.generalisation.pac_bayes_kl import pac_bayes_kl
    from attlas.bounds.generalisation.token_bound import token_bound
    from attlas.bounds.generalisation.union import union
    from attlas.claims.claim import Claim, Control, Source, assume
    from attlas.claims.domains.matrices import Orthogonal, Rank, Semidefinite
    from attlas.claims.domains.vectors import (
        Ball,
        Box,
        Nonnegative,
        OneOf,
        Ordered,
        Positive,
        Real,
        Simplex,
        Sphere,
    )
    from attlas.claims.first_order.enclosure import enclose_worst_case
    from attlas.claims.first_order.function_classes import Convex, LipschitzConvex, SmoothConvex
    from attlas.claims.first_order.methods import (
        FastGradient,
        GradientDescent,
        HeavyBall,
        ProximalPoint,
    )
    from attlas.claims.sides import Doubling, Sides
    from attlas.claims.statement import (
        computed,
        erratum,
        existence,
        expectation,
        identity,
        inequality,
        limit,
        probability,
        rate,
    )
    from attlas.claims.worst_case import worst_case
    from attlas.core.solution import Solution
    from attlas.experiments.load import load
    from attlas.experiments.run import run
    from attlas.kernels.multi_head_ntk import ntk_gram
    from attlas.kernels.softmax_network_ntk import softmax_ntk
    from attlas.measures.attention.concentration import concentration
    from attlas.measures.attention.direction import direction_divergence
    from attlas.measures.complexity.rademacher import rademacher_complexity
    from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes
    from attlas.optim.mirror_descent import bregman, mirror_descent
    from attlas.solvers.attention_svm import attention_svm
    from attlas.solvers.kernel_svm import kernel_svm
    from attlas.solvers.lp_svm import lp_svm
    from attlas.training.fit import fit
    from attlas.training.trajectory import Trajectory
    from attlas.transformers.load_model import load_model
    from attlas.verify.challenge import challenge, replay
    from attlas.verify.check import check
    from attlas.verify.power import power
    from attlas.verify.registry import find_claims

_PLACES = {
    "Claim": "claims.claim",
    "Control": "claims.claim",
    "Sides": "claims.sides",
    "Doubling": "claims.sides",
    "Source": "claims.claim",
    "assume": "claims.claim",
    "Ball": "claims.domains.vectors",
    "Box": "claims.domains.vectors",
    "Nonnegative": "claims.domains.vectors",
    "OneOf": "claims.domains.vectors",
    "Ordered": "claims.domains.vectors",
    "Positive": "claims.domains.vectors",
    "Real": "claims.domains.vectors",
    "Simplex": "claims.domains.vectors",
    "Sphere": "claims.domains.vectors",
    "Orthogonal": "claims.domains.matrices",
    "Rank": "claims.domains.matrices",
    "Semidefinite": "claims.domains.matrices",
    "enclose_worst_case": "claims.first_order.enclosure",
    "worst_case": "claims.worst_case",
    "Convex": "claims.first_order.function_classes",
    "LipschitzConvex": "claims.first_order.function_classes",
    "SmoothConvex": "claims.first_order.function_classes",
    "FastGradient": "claims.first_order.methods",
    "GradientDescent": "claims.first_order.methods",
    "HeavyBall": "claims.first_order.methods",
    "ProximalPoint": "claims.first_order.methods",
    "identity": "claims.statement",
    "inequality": "claims.statement",
    "limit": "claims.statement",
    "rate": "claims.statement",
    "probability": "claims.statement",
    "expectation": "claims.statement",
    "existence": "claims.statement",
    "computed": "claims.statement",
    "erratum": "claims.statement",
    "check": "verify.check",
    "challenge": "verify.challenge",
    "replay": "verify.challenge",
    "power": "verify.power",
    "find_claims": "verify.registry",
    "Solution": "core.solution",
    "attention_svm": "solvers.attention_svm",
    "lp_svm": "solvers.lp_svm",
    "kernel_svm": "solvers.kernel_svm",
    "mirror_descent": "optim.mirror_descent",
    "bregman": "optim.mirror_descent",
    "concentration": "measures.attention.concentration",
    "direction_divergence": "measures.attention.direction",
    "hessian_extremes": "measures.curvature.extreme_eigenvalues",
    "rademacher_complexity": "measures.complexity.rademacher",
    "ntk_gram": "kernels.multi_head_ntk",
    "softmax_ntk": "kernels.softmax_network_ntk",
    "compare_bounds": "bounds.comparison.compare",
    "TransformerWeights": "bounds.comparison.transformer_weights",
    "held_out_bound": "bounds.generalisation.held_out_bound",
    "compression_bound": "bounds.generalisation.compression_bound",
    "pac_bayes_kl": "bounds.generalisation.pac_bayes_kl",
    "token_bound": "bounds.generalisation.token_bound",
    "union": "bounds.generalisation.union",
    "certify": "audit.certify",
    "fit": "training.fit",
    "Trajectory": "training.trajectory",
    "load": "experiments.load",
    "run": "experiments.run",
    "audit": "audit.audit",
    "load_model": "transformers.load_model",
}

__all__ = list(_PLACES)


__getattr__, __dir__ = lazy_names(__name__, _PLACES)
