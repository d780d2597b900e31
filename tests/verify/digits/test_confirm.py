"""A violation in floats is a violation in digits, or none: theorems, and false statements."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.statement import identity, inequality, limit
from attlas.claims.verdict import Outcome
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check
from attlas.verify.digits import confirm
from attlas.verify.digits.confirm import confirmed
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, Unconfirmed
from attlas.verify.evidence import compile_program, decide, gather

FACTOR = [Control("another constant", factor=0.1)]


def stated(function, decorator=inequality, **details):
    """A claim of a function, whose instances the tests give."""

    def sample(rng, count):
        return {"x": rng.normal(size=(count, 3))}

    def claimed(x, *, factor=1.0):
        """The statement of the test."""
        left, right = function(x)
        return left, factor * right

    return decorator(sample=sample, controls=FACTOR, **details)(claimed)


def spread(*x):
    """An instance with the numbers of a test."""
    return {"x": np.array(x, dtype=float)}


def positive(x):
    """A positive definite matrix whose condition grows with x."""
    turn = jnp.linalg.qr(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 1.0]]))[0]
    return (turn * jnp.exp(x)[None]) @ turn.T


def largest(matrix):
    return jnp.linalg.eigvalsh(matrix)[-1]


def weyl(x):
    a, b = positive(x), positive(-x[::-1] / 9)
    return largest(a + b) - largest(a), largest(b)


def trace_power(x):
    """Lieb and Thirring for matrices that commute, where both sides are equal."""
    a, b = positive(x), positive(2 * x)
    power = jnp.linalg.matrix_power
    return 0.0, jnp.trace(power(b, 3) @ power(a, 3) @ power(b, 3)) - jnp.trace(power(b @ a @ b, 3))


def lipschitz(x):
    gap = jax.nn.logsumexp(x) - jax.nn.logsumexp(0 * x)
    return jnp.abs(gap), jnp.max(jnp.abs(x))


TRUE = {
    "the gap of two log-sum-exps": (lipschitz, spread(*3 * [2.61998366e-05])),
    "log-sum-exp less the mean": (
        lambda x: (jnp.log(3.0), jax.nn.logsumexp(x) - jnp.mean(x)),
        spread(*3 * [1.4e8 + 0.14]),
    ),
    "1 + x <= exp x": (lambda x: (x[0], jnp.exp(x[0]) - 1), spread(2.5e-9, 0, 0)),
    "cosine": (lambda x: ((1 - jnp.cos(x[0])) / x[0] ** 2, 0.5), spread(1.2e-8, 0, 0)),
    "variance": (
        lambda x: (0.0, jnp.mean(x**2) - jnp.mean(x) ** 2),
        spread(3.3e8, 3.3e8 + 1.1, 3.3e8 + 3.3),
    ),
    "Weyl": (weyl, spread(20, 0, -20)),
    "determinant": (lambda x: (0.0, jnp.linalg.det(positive(x))), spread(0, -20, -44)),
    "smallest eigenvalue": (
        lambda x: (0.0, jnp.linalg.eigvalsh(positive(x))[0]),
        spread(31, 1, -30),
    ),
    "trace of powers": (trace_power, spread(8.75, 1.25, -11.25)),
    "telescoped": (lambda x: (x[0], jnp.sum(x) - x[1] - x[2]), spread(1e-3, 3e9, 7e8)),
}
IDENTITIES = {
    "difference of squares": (
        lambda x: (x[0] ** 2 - x[1] ** 2, (x[0] - x[1]) * (x[0] + x[1])),
        spread(1e8 + 1, 1e8, 0),
    ),
    "determinant": (
        lambda x: (jnp.linalg.det(positive(x)), jnp.exp(jnp.sum(x))),
        spread(10, -20, 5),
    ),
    "log1p": (lambda x: (jnp.log(1 + x[0]), jnp.log1p(x[0])), spread(1e-9, 0, 0)),
}


@pytest.mark.parametrize("name", [*TRUE, *IDENTITIES])
def test_a_theorem_whose_floats_look_violated_is_not_violated(name):
    function, instance = (TRUE | IDENTITIES)[name]
    claim = stated(function, identity if name in IDENTITIES else inequality)
    verdict = replay(claim, instance)
    assert verdict.outcome is not Outcome.VIOLATED, verdict
    assert confirmed(claim, instance).violates is not True


def test_floats_violate_most_of_these_theorems():
    broken = []
    for name, (function, instance) in (TRUE | IDENTITIES).items():
        claim = stated(function, identity if name in IDENTITIES else inequality)
        holds, sides = compile_program(claim)({"x": jnp.asarray(instance["x"])[None]})
        if decide(claim, gather(claim, holds, sides[0])).outcome is Outcome.VIOLATED:
            broken.append(name)
    # Which way a sum is rounded depends on the processor.
    assert len(broken) >= 10, broken


FALSE = {
    "sum": (lambda x: (jnp.sum(x), 2.0), spread(3, 0, 0), 1.0),
    "spectral norm": (
        lambda x: (jnp.linalg.norm(positive(x), 2), jnp.max(jnp.exp(x)) / 2),
        spread(1, 2, 3),
        math.exp(3) / 2,
    ),
    "a small one": (lambda x: (jnp.exp(x[0]) - 1 - x[0], 0.0), spread(1e-4, 0, 0), 5.0001667e-9),
    "a tiny scale": (lambda x: (x[0] ** 2, x[0] ** 2 / 2), spread(1e-20, 0, 0), 5e-41),
    "gamma": (lambda x: (jax.lax.lgamma(x[0]), x[0]), spread(10, 0, 0), math.lgamma(10) - 10),
    "a loop": (
        lambda x: (jax.lax.fori_loop(0, 50, lambda i, c: 0.9 * c + x[0], 0.0), 9 * x[0]),
        spread(1, 0, 0),
        10 * (1 - 0.9**50) - 9,
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_statement_stays_violated_with_its_digits(name):
    function, instance, excess = FALSE[name]
    verdict = replay(stated(function), instance)
    assert verdict.outcome is Outcome.VIOLATED, verdict
    digits = verdict.confirmed
    assert digits.violates
    assert digits.digits >= 30
    assert "confirmed in 60 digits" in verdict.reason
    if excess > 1e-3:
        assert math.isclose(float(digits.left) - float(digits.right), excess, rel_tol=1e-9)


UNDECIDED = {
    "'nextafter' has no rule": (lambda x: (jax.lax.nextafter(x[0], 3.0), 0.0), spread(1, 0, 0)),
    "numbers of float32": (
        lambda x: (x.astype(jnp.float32)[0].astype(float), 0.0),
        spread(1, 0, 0),
    ),
    "not finite in 60 digits": (
        lambda x: (1.0, jnp.log(jnp.abs(x[0] + x[1] - x[0] - x[1]))),
        spread(1e16, 1, 0),
    ),
    "rounding of the inputs decides": (
        lambda x: (0.0, 1 - jnp.sum(x)),
        spread(*3 * [np.nextafter(np.nextafter(1 / 3, 1), 1)]),
    ),
}


@pytest.mark.parametrize("words", UNDECIDED)
def test_what_digits_cannot_decide_is_inconclusive_with_one_line(words):
    function, instance = UNDECIDED[words]
    verdict = replay(stated(function, roundings=1), instance)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert words in verdict.reason
    assert "\n" not in verdict.reason


def test_an_assumption_that_holds_in_floats_alone_excludes_no_violation_beyond_rounding():
    unit = assume("x is a unit vector", lambda x: jnp.linalg.norm(x) <= 1)
    false = stated(lambda x: (x[0] + x[1], 1.0), assumptions=[unit])
    third = np.array([2.0, 2.0, 1.0]) / 3
    assert replay(false, {"x": third}).outcome is Outcome.VIOLATED
    true = stated(lambda x: (jnp.linalg.norm(x), 1.0), assumptions=[unit])
    assert replay(true, {"x": third}).outcome is not Outcome.VIOLATED


def test_a_long_loop_is_compared_with_its_change_under_rounding_of_the_inputs(monkeypatch):
    monkeypatch.setattr(confirm, "OPERATIONS", 2000)

    def long(x):
        return jax.lax.fori_loop(0, 5000, lambda i, c: 0.5 * c + x[0], 0.0), x[0]

    instance = spread(1, 0, 0)
    found = confirm.examined(stated(long), instance, 2000).confirmation
    assert found.violates
    assert found.digits == 0
    assert "not evaluated in digits" in found.reason

    def chaotic(x):
        return jax.lax.fori_loop(0, 5000, lambda i, c: 4 * c * (1 - c), x[0]), 0.0

    lost = confirm.examined(stated(chaotic), spread(0.3, 0, 0), 2000).confirmation
    assert lost.violates is None
    assert lost.reason.startswith("not confirmed in digits: it takes too many operations")


def absolute_power(matrix, p):
    """|M|^p by the eigenvalues of M^T M."""
    values, vectors = jnp.linalg.eigh(matrix.T @ matrix)
    return (vectors * values[None] ** (p / 2)) @ vectors.T


def log_det(matrix):
    return jnp.sum(jnp.log(jnp.linalg.eigvalsh(matrix)))


def positive_pairs(rng, count):
    a, b = rng.normal(size=(2, count, 3, 3))
    little = 1e-3 * np.eye(3)
    return {
        "A": a @ a.swapaxes(1, 2) + little,
        "B": b @ b.swapaxes(1, 2) + little,
        "p": rng.uniform(0.1, 10, size=count),
    }


@inequality(sample=positive_pairs, controls=FACTOR)
def log_determinants(A, B, p, *, factor=1.0):
    r"""$$\log\det(A^2 + |BA|^p) \le \log\det(A^2 + |AB|^p)$$"""
    return log_det(A @ A + absolute_power(B @ A, p)), factor * log_det(
        A @ A + absolute_power(A @ B, p)
    )


@pytest.mark.thorough
def test_a_search_that_ends_where_floats_fail_violates_no_theorem():
    found = challenge(log_determinants, method="moves", evaluations=6400)
    assert not found.violated
    assert found.verdict.outcome is not Outcome.VIOLATED
    assert found.ratio is None or found.ratio < 1 + 1e-9
    assert "withdrawn in digits" in found.verdict.reason


@inequality(
    sample=lambda rng, count: {name: rng.normal(size=(count, 3, 3)) for name in "AB"},
    controls=FACTOR,
)
def golden_thompson(A, B, *, factor=1.0):
    r"""$$\mathrm{tr}\, e^{A + B} \le \mathrm{tr}\, e^A e^B$$ for symmetric matrices."""
    exp, A, B = jax.scipy.linalg.expm, A + A.T, B + B.T
    return jnp.trace(exp(A + B)), factor * jnp.trace(exp(A) @ exp(B))


def test_the_exponential_of_a_matrix_is_not_the_approximation_of_floats():
    far = {"A": 12 * np.ones((3, 3)), "B": 12 * np.ones((3, 3))}
    assert replay(golden_thompson, far).outcome is not Outcome.VIOLATED
    found = challenge(golden_thompson, method="extremes", evaluations=6400)
    assert not found.violated
    program = jax.make_jaxpr(lambda a: jax.vmap(jax.scipy.linalg.expm)(a))(jnp.ones((2, 3, 3)))
    with pytest.raises(Unconfirmed, match="several matrices"):
        evaluate(Precision(60), program, [np.ones((2, 3, 3))])


def test_the_tolerance_is_that_of_the_kind():
    class Strict(Inequality):
        noun, plural, violation = "a strict inequality", "strict ones", "are not below"

        def tolerance(self, evidence, roundings):
            return -super().tolerance(evidence, roundings) - np.finfo(float).tiny

    strict = stated(lambda x: (x[0], x[0]))
    object.__setattr__(strict, "kind", SimpleNamespace(rule=Strict()))
    assert confirmed(strict, spread(1, 0, 0)).violates
    assert not confirmed(stated(lambda x: (x[0], x[0])), spread(1, 0, 0)).violates


def test_the_check_confirms_and_stores_the_digits():
    false = stated(lambda x: (jnp.sum(x), 2.0))
    verdict = check(false, challenge=0).verdict
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.confirmed.violates
    assert verdict.confirmed.right == "2.0"


def test_an_ensemble_confirms_nothing():
    @limit(
        sample=lambda rng, count: {"x": rng.uniform(1, 2, size=count)},
        scales=np.array([1.0, 2.0, 4.0, 8.0]),
        controls=[Control("another limit", offset=1.0)],
    )
    def shrinking(x, *, offset=0.0):
        """x / n tends to zero."""
        return x / jnp.array([1.0, 2.0, 4.0, 8.0]) + offset, jnp.zeros(4)

    with pytest.raises(ValueError, match="decided by many instances"):
        confirmed(shrinking, {"x": np.array(1.0)})


def on_sphere(rng, count):
    """Three unit vectors for each instance, two of them near each other in every second one."""
    v = rng.normal(size=(3, count, 4))
    v[1, ::2] = v[0, ::2] + 1e-9 * v[1, ::2]
    x, y, z = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return {"x": x, "y": y, "z": z}


def distributions(rng, count):
    """Two distributions for each instance, near each other in every second one."""
    p, q = rng.dirichlet(np.ones(4), size=(2, count))
    q[::2] = p[::2] + 1e-9 * (q[::2] - p[::2])
    return {"p": p, "q": q}


def angle(x, y):
    return jnp.arccos(jnp.clip(x @ y, -1, 1))


def angles(x, y, z, *, factor=1.0):
    """The triangle inequality of angles."""
    return angle(x, z), factor * (angle(x, y) + angle(y, z))


def chord(x, y, *, factor=1.0):
    """A chord by its angle, an equality."""
    return jnp.linalg.norm(x - y), factor * jnp.sqrt(jnp.maximum(0, 2 - 2 * x @ y))


def sine(x, y, *, factor=1.0):
    """The sine is at most the chord."""
    return jnp.sqrt(jnp.maximum(0, 1 - (x @ y) ** 2)), factor * jnp.linalg.norm(x - y)


def pinsker(p, q, *, factor=1.0):
    """Pinsker's inequality in its form with a root."""
    return jnp.sum(jnp.abs(p - q)), factor * jnp.sqrt(2 * jnp.sum(p * jnp.log(p / q)))


def fourth_root(p, q, *, factor=1.0):
    """A fourth root of what vanishes for a distribution."""
    return jnp.abs(1 - jnp.sum(p)) ** 0.25, factor * 0 * q[0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sample", "sides"),
    [
        (on_sphere, angles), (on_sphere, chord), (on_sphere, sine),
        (distributions, pinsker), (distributions, fourth_root),
    ],
)  # fmt: skip
def test_roots_of_rounded_constraints_violate_nothing(sample, sides, seed):
    """Unit vectors and distributions are so up to a rounding, of which a root makes 1e-8."""
    claim = inequality(sample=sample, controls=FACTOR)(sides)
    instances = sample(np.random.default_rng(seed), 16)
    found = [
        confirmed(claim, {name: values[place] for name, values in instances.items()})
        for place in range(16)
    ]
    assert [each.reason for each in found if each.violates] == []


def test_a_small_violation_on_a_sphere_is_confirmed():
    """Where the vectors are apart a chord exceeds a tenth of what the formula with a root says."""

    def tenth(x, y, *, factor=1.0):
        """A false statement."""
        left, right = chord(x, y)
        return left, factor * right / 10

    claim = inequality(sample=on_sphere, controls=FACTOR)(tenth)
    instances = on_sphere(np.random.default_rng(0), 2)
    instance = {name: values[1] for name, values in instances.items()}
    assert confirmed(claim, instance).violates
