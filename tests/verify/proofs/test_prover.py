"""Identities proved by exact algebra; what is false, large or not ordinary is not proved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Real
from attlas.claims.proof import BOX, EVALUATION, EXPANSION, PATHS, Proof
from attlas.claims.statement import identity, inequality
from attlas.verify.proofs import choices, identities, matrices, prover
from attlas.verify.proofs.exact_rules import RULES
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck


def claim_of(sides, *shapes, positive=False):
    def stated(x, y, *, factor=1.0):
        r"""$$f(x, y) = g(x, y)$$"""
        return sides(x, y, factor)

    def draw(rng, count):
        names = zip("xy", shapes, strict=True)
        arrays = {name: rng.normal(size=(count, *shape)) for name, shape in names}
        return {name: np.exp(v) if positive else v for name, v in arrays.items()}

    return identity(sample=draw, alike=True, controls=[Control("double", factor=2.0)])(stated)


TRUE = {
    "binomial": (lambda x, y, c: (c * (x + y) ** 2, x**2 + 2 * x * y + y**2), (), ()),
    "shift of a softmax": (
        lambda x, y, c: (jax.nn.softmax(c * x + y), jax.nn.softmax(x)), (3,), (),
    ),
    "transposed product": (lambda x, y, c: (c * (x @ y).T, y.T @ x.T), (2, 3), (3, 2)),
    "batch of products": (
        lambda x, y, c: (c * jnp.einsum("bij,bjk->bik", x, y).sum(0),
                         x[0] @ y[0] + x[1] @ y[1]), (2, 2, 2), (2, 2, 2),
    ),
    "log of a product": (lambda x, y, c: (jnp.log(jnp.exp(x) * jnp.exp(c * y)), x + y), (), ()),
    "quotients": (lambda x, y, c: (c / x + 1 / y, (x + y) / (x * y)), (), ()),
    "logistic": (lambda x, y, c: (jax.nn.sigmoid(c * x) + y, 1 - jax.nn.sigmoid(-x) + y), (), ()),
    "root of a square": (lambda x, y, c: (c * jnp.sqrt(x**2) * y, jnp.abs(x) * y), (), ()),
    "a sum of extremes": (
        lambda x, y, c: (c * jnp.maximum(x, y) + jnp.minimum(x, y), x + y), (), (),
    ),
    "a scan": (
        lambda x, y, c: (c * jax.lax.scan(lambda s, v: (s * y + v, s), 0.0 * y, x)[0],
                         x[0] * y**2 + x[1] * y + x[2]), (3,), (),
    ),
    "a third": (lambda x, y, c: (c * x * (1 / 3) * 3 + y, x + y), (), ()),
    "gradient of a softmax": (
        lambda x, y, c: (jax.grad(lambda v: c * jax.nn.softmax(v) @ y)(x),
                         jax.nn.softmax(x) * (y - jax.nn.softmax(x) @ y)), (3,), (3,),
    ),
    "sum of angles": (
        lambda x, y, c: (jnp.sin(2 * c * x - y), 2 * jnp.sin(x) * jnp.cos(x) * jnp.cos(y)
                         - (1 - 2 * jnp.sin(x) ** 2) * jnp.sin(y)), (), (),
    ),
    "a sort": (lambda x, y, c: (c * jnp.sort(x)[0] + y, x.min() + y), (2,), ()),
    "a largest place": (lambda x, y, c: (c * x[jnp.argmax(x)] + y, x.max() + y), (3,), ()),
    "the two largest": (
        lambda x, y, c: (c * jax.lax.top_k(x, 2)[0].sum() + y, x.sum() - x.min() + y), (3,), (),
    ),
    "a solution": (lambda x, y, c: (x @ jnp.linalg.solve(x, c * y), y), (3, 3), (3,)),
    "a determinant": (
        lambda x, y, c: (c * jnp.linalg.det(x @ y), jnp.linalg.det(x) * jnp.linalg.det(y)),
        (2, 2), (2, 2),
    ),
    "a factor of Cholesky": (
        lambda x, y, c: (c * jnp.prod(jnp.diag(jnp.linalg.cholesky(x @ x.T))) ** 2 * y,
                         jnp.linalg.det(x) ** 2 * y), (2, 2), (),
    ),
    "norm of a unit vector": (
        lambda x, y, c: (c * jnp.linalg.norm(x / jnp.linalg.norm(x)) + y, 1 + y), (3,), (),
    ),
}  # fmt: skip
POSITIVE = {
    "powers": (lambda x, y, c: (c * x**y * x ** (1 - y), x + 0 * y), (), ()),
    "logarithms": (lambda x, y, c: (c * jnp.log(x / y**2), jnp.log(x) - 2 * jnp.log(y)), (), ()),
    "roots": (lambda x, y, c: (c * jnp.sqrt(12 * x * y**2), 2 * y * jnp.sqrt(3 * x)), (), ()),
    "cube roots": (
        lambda x, y, c: (c * jnp.cbrt((x + y) ** 2) * jnp.cbrt(x + y), x + y), (), (),
    ),
}  # fmt: skip
FALSE = {
    "a constant that is off in its last digit": (
        lambda x, y, c: (c * (x + y), x * (1 + 2**-52) + y), (), (), "does not vanish",
    ),
    "a root of a square without its sign": (
        lambda x, y, c: (c * jnp.sqrt(x**2) + y, x + y), (), (), "does not vanish",
    ),
    "the larger one": (
        lambda x, y, c: (c * jnp.maximum(x, y), x + 0 * y), (), (), "does not vanish",
    ),
    "a logarithm of a sum": (
        lambda x, y, c: (jnp.log(jnp.exp(x) + c * jnp.exp(y)), x + y), (), (), "does not vanish",
    ),
    "a sine without its square": (
        lambda x, y, c: (c * jnp.sin(x) ** 2, 1 - jnp.cos(x) + 0 * y), (), (), "does not vanish",
    ),
    "a smallest place": (
        lambda x, y, c: (c * x[jnp.argmin(x)], x.max() + 0 * y), (2,), (), "does not vanish",
    ),
    "an error function": (
        lambda x, y, c: (c * jax.lax.erf(x), -jax.lax.erf(-x) + 0 * y), (), (), "'erf' has no",
    ),
    "true of two entries and not of three": (
        lambda x, y, c: (c * (x[0] + x[1] + 0 * y), x.sum() + 0 * y), (3,), (), "does not vanish",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_true_identities_are_proved(name):
    proof = prove(claim_of(*TRUE[name]))
    assert isinstance(proof, Proof), proof
    assert proof.method == EXPANSION
    assert proof.domain.startswith("for a")
    assert proof.domain.endswith("where both sides are defined")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.thorough if n == "cube roots" else ()) for n in POSITIVE],
)
def test_identities_of_positive_numbers_are_proved(name):
    claim = claim_of(*POSITIVE[name], positive=True)
    proof = prove(claim)
    assert isinstance(proof, Proof), proof
    assert "positive x, y" in proof.domain
    of_all = prove(claim_of(*POSITIVE[name]))
    if name == "cube roots":  # they hold for negative numbers too, on the two paths of draws
        assert isinstance(of_all, Proof), of_all
        assert of_all.method == PATHS
    else:
        assert isinstance(of_all, str)


@pytest.mark.parametrize("name", FALSE)
def test_what_is_not_proved_says_why(name):
    *sides, why = FALSE[name]
    assert why in prove(claim_of(*sides))


def test_compared_numbers_are_excluded_and_named():
    def larger(x, y, factor):
        return factor * jnp.where(x > y, x, y), jnp.where(y > x, y, x)

    proof = prove(claim_of(larger, (), ()))
    assert isinstance(proof, Proof)
    assert proof.domain.startswith("for almost all real x, y")
    assert all(case["excluded"] for case in proof.certificate["cases"])


def test_a_proof_that_leaves_out_what_is_drawn_is_none():
    def at_one(x, y, factor):
        return factor * jnp.where(x == 1, x + 1, x) + y, x + y

    claim = claim_of(at_one, (), ())
    assert isinstance(prove(claim), Proof)  # almost everywhere

    def draw(rng, count):
        return {"x": np.where(np.arange(count) % 2, 1.0, rng.normal(size=count)),
                "y": rng.normal(size=count)}  # fmt: skip

    text = prove(identity(sample=draw, controls=[Control("2", factor=2.0)])(
        lambda_with_name(at_one)
    ))  # fmt: skip
    assert "leaves out" in text


def lambda_with_name(sides):
    def stated(x, y, *, factor=1.0):
        r"""$$f = g$$"""
        return sides(x, y, factor)

    return stated


def test_discrete_arrays_stay_numbers():
    def draw(rng, count):
        return {"x": rng.choice([-1.0, 1.0], size=(count, 2)), "y": rng.normal(size=count)}

    def signs(x, y, factor):
        return factor * x[0] ** 2 * y, x[1] ** 2 * y

    claim = identity(sample=draw, controls=[Control("2", factor=2.0)])(lambda_with_name(signs))
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert "for each of the 4 values of x" in proof.domain


def test_entries_that_are_always_opposite_stay_so():
    def draw(rng, count):
        x = rng.normal(size=(count, 2))
        return {"x": np.concatenate([x, -x], axis=1), "y": rng.normal(size=count)}

    def balanced(x, y, factor):
        return x.sum() ** 3 + factor * y, y + 0 * x[0]

    claim = identity(sample=draw, controls=[Control("2", factor=2.0)])(lambda_with_name(balanced))
    proof = prove(claim)
    assert isinstance(proof, Proof), proof
    assert proof.where["links"] == {"x[2]": "-x[0]", "x[3]": "-x[1]"}
    assert "equal or opposite" in proof.domain
    free = claim_of(lambda x, y, c: (x.sum() ** 3 + c * y, y + 0 * x[0]), (4,), ())
    assert prove(free) == "left - right does not vanish"


@pytest.mark.thorough
def test_large_expressions_are_proved_at_a_random_point(monkeypatch):
    monkeypatch.setattr(identities, "SECONDS", 0.5)
    x = TRUE["gradient of a softmax"]

    def sides(x, y, c):
        return (c * jnp.prod(x.sum(1) + y), jnp.prod((x + y / 8).sum(1)))

    proof = prove(claim_of(sides, (8, 8), ()))
    assert isinstance(proof, Proof), proof
    assert proof.method == EVALUATION
    assert proof.certificate["bits"] > 200
    assert isinstance(prove(claim_of(*x)), Proof)

    def false(x, y, c):
        return (c * jnp.prod(x.sum(1) + y), jnp.prod((x + y / 9).sum(1)))

    assert "does not vanish" in prove(claim_of(false, (8, 8), ()))


def test_a_proof_that_would_prove_a_control_is_none():
    claim = claim_of(lambda x, y, c: (x + y + 0 * c, y + x), (), ())
    assert "the control 'double' would be proved too" in prove(claim)


def test_a_control_with_instances_in_the_domain_contradicts_the_proof():
    def draw(rng, count):
        return {"x": rng.normal(size=count)}

    def stated(x):
        r"""$$x = x$$"""
        return x, x * 1.0

    claim = identity(sample=draw, controls=[Control("others", sample=draw)])(stated)
    assert "has instances in its domain" in prove(claim)


def test_a_rule_that_is_wrong_is_noticed_by_the_digits(monkeypatch):
    from attlas.verify.proofs import exact_rules

    rules = {**exact_rules.RULES, "erf": exact_rules.RULES["tanh"]}
    monkeypatch.setattr(exact_rules, "RULES", rules)
    claim = claim_of(lambda x, y, c: (c * jax.lax.erf(x) + y, jnp.tanh(x) + y), (), ())
    assert "an evaluation in digits does not confirm it" in prove(claim)


def test_inequalities_are_proved_on_a_box():
    @inequality(domains=[Real("x", shape="n")], sizes={"n": 2}, controls=[Control("n", s=-1.0)])
    def square(x, *, s=1.0):
        r"""$$0 \\le \\exp(x^2) - 1$$"""
        return jnp.sum(0 * x), jnp.sum(s * jnp.expm1(x**2))

    proof = prove(square)
    assert isinstance(proof, Proof)
    assert proof.method == BOX


def test_a_stored_proof_is_checked_again():
    claim = claim_of(*TRUE["binomial"])
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert recheck(claim, Proof.read(proof.document()), seed=3) == ""
    false = claim_of(lambda x, y, c: (c * (x + y) ** 2, x**2 + y**2), (), ())
    assert "the sides differ by" in recheck(false, proof)
    larger = claim_of(*TRUE["binomial"][:1], (2,), ())
    assert recheck(larger, proof) == "its sampler draws other shapes now"


def test_orders_and_decompositions_have_exact_rules():
    assert {"sort", "argmax", "argmin", "top_k"} == choices.RULES.keys()
    assert {"eigh", "svd", "lu", "cholesky", "triangular_solve"} == matrices.RULES.keys()
    assert {**choices.RULES, **matrices.RULES}.items() <= RULES.items()


def test_seconds_end_a_proof(monkeypatch):
    monkeypatch.setattr(identities, "SECONDS", -1.0)
    claim = claim_of(*TRUE["binomial"])
    assert "it takes" in prove(claim, seconds=1e-9)
    # Seconds that are given are those along the draws.
    assert prove(claim, seconds=60.0).method == PATHS


def test_methods_say_what_is_trusted():
    assert set(prover._TRUSTED) == {EXPANSION, EVALUATION, PATHS}
