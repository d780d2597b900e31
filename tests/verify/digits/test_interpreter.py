"""Every rule in digits agrees with JAX, and is exact where floats are not."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest

from attlas.verify.digits import elementwise, integers, linear_algebra, movement, reductions
from attlas.verify.digits.interpreter import evaluate, uncovered
from attlas.verify.digits.precision import Precision, TooLongError, Unconfirmed

RNG = np.random.default_rng(0)
SQUARE = jnp.asarray(RNG.normal(size=(4, 4)))
POSITIVE = SQUARE @ SQUARE.T + jnp.eye(4)
TALL = jnp.asarray(RNG.normal(size=(4, 3)))
X = jnp.asarray(RNG.normal(size=5))
LINEAR_ALGEBRA = {
    "eigenvalues": (jnp.linalg.eigvalsh, POSITIVE),
    "radius": (lambda a: jnp.max(jnp.abs(jnp.linalg.eigvals(a))), SQUARE),
    "complex eigenvalues": (
        lambda a: (lambda w: (w.real, w.imag, jnp.abs(w - w.conj()) + jnp.abs(-w * w)))(
            jnp.linalg.eigvals(a)
        ),
        SQUARE,
    ),
    "eigenvectors": (
        lambda a: (lambda w, v: (v * w[None] ** 1.5) @ v.T)(*jnp.linalg.eigh(a)),
        POSITIVE,
    ),
    "several": (lambda a: jax.vmap(jnp.linalg.eigvalsh)(jnp.stack([a, a @ a])), POSITIVE),
    "qr": (jnp.linalg.qr, TALL),
    "qr, wide": (jnp.linalg.qr, TALL.T),
    "qr, complete": (lambda a: jnp.linalg.qr(a, mode="complete"), TALL),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False), TALL),
    "vectors": (lambda a: (lambda u, s, v: (u * s[None]) @ v)(*jnp.linalg.svd(a, False)), TALL),
    "nuclear": (lambda a: jnp.linalg.norm(a, "nuc"), SQUARE),
    "determinant": (jnp.linalg.det, SQUARE),
    "logarithm": (jnp.linalg.slogdet, SQUARE),
    "solve": (lambda a: jnp.linalg.solve(a, a[0]), SQUARE),
    "inverse": (jnp.linalg.inv, SQUARE),
    "cholesky": (jnp.linalg.cholesky, POSITIVE),
    "expm": (jsp.linalg.expm, SQUARE),
}
LOOPS = {
    "scan": (lambda x: jax.lax.scan(lambda c, y: (c / 2 + y, c), 0.0, x), X),
    "reversed": (lambda x: jax.lax.scan(lambda c, y: (c * y, c), 1.0, x, reverse=True), X),
    "while": (lambda x: jax.lax.while_loop(lambda c: c > 1e-3, lambda c: c / 2, x[0] ** 2), X),
    "cond": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X),
    "switch": (lambda x: jax.lax.switch(2, [jnp.sin, jnp.cos, jnp.tan], x), X),
    "scan, the last of three": (
        lambda x: jax.lax.scan(lambda c, y: (c + y, (jnp.sin(c), c, y * c)), 0.0, x)[1][2],
        X,
    ),
    "cond, the second of two": (
        lambda x: jax.lax.cond(x[0] > 0, lambda x: (x, 2 * x), lambda x: (1 / x, -x), x)[1],
        X,
    ),
    "hessian": (jax.hessian(lambda x: jsp.special.logsumexp(x**2)), X),
}
FUNCTIONS = {
    "softmax": (jax.nn.softmax, X),
    "gelu": (jax.nn.gelu, X),
    "lgamma": (jsp.special.gammaln, X),
    "digamma": (jsp.special.digamma, X),
    "erf": (jsp.special.erf, X),
    "normal quantile": (lambda x: jsp.special.ndtri(jax.nn.sigmoid(x)), X),
    "beta": (lambda x: jsp.special.betainc(2.0, 3.0, jax.nn.sigmoid(x)), X),
    "powers": (lambda x: (jnp.abs(x) ** 2.5, x**3, jnp.cbrt(x), 1 / x, jax.lax.rsqrt(x**2)), X),
    "inverse functions": (lambda x: (jnp.arctan2(x, 2.0), jnp.arcsinh(x), jnp.tanh(x)), X),
    "whole": (lambda x: (jnp.floor(3 * x), jnp.round(3 * x), jnp.mod(x, 0.7), jnp.sign(x)), X),
    "clip": (lambda x: (jnp.clip(x, -0.5, 0.5), jnp.maximum(x, 0), jnp.where(x > 0, x, 1.0)), X),
}
MOVES = {
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x), jnp.quantile(x, 0.3)), X),
    "largest": (lambda x: (jnp.argmax(x), jax.lax.top_k(x, 2)), X),
    "cumulative": (lambda x: (jnp.cumsum(x), jnp.cumprod(x), jax.lax.cumlogsumexp(x)), X),
    "set": (lambda x: (x.at[1].set(3.0), x.at[jnp.array([1, 1, 3])].add(2.5)), X),
    "take": (lambda x: (x[jnp.array([3, 0])], jnp.take(x, jnp.array([0, 9]), fill_value=7.0)), X),
    "tiles": (lambda x: (jnp.tile(x, (2, 1)), jnp.stack([x, 2 * x]), jnp.pad(x, 2), x[::-1]), X),
    "triangle": (lambda a: (jnp.triu(a), jnp.einsum("ij,kj->ik", a, a), a.T), SQUARE),
    "random": (lambda x: x[:3] * jax.random.uniform(jax.random.key(0), (3,)), X),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*LINEAR_ALGEBRA, *LOOPS, *FUNCTIONS, *MOVES])
def test_a_rule_agrees_with_jax(name):
    function, x = {**LINEAR_ALGEBRA, **LOOPS, **FUNCTIONS, **MOVES}[name]
    program = jax.make_jaxpr(function)(x)
    assert not uncovered(program)
    digits = evaluate(Precision(40), program, [x])
    for value, expected in zip(digits, jax.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(value.astype(float), expected, rtol=1e-12, atol=1e-13)


def test_what_no_output_needs_is_not_computed():
    def measured(c, y):
        several = jax.jit(lambda a: (jnp.nextafter(a, 2.0), jnp.sin(a), a + y))(c)
        return several[2], several

    program = jax.make_jaxpr(lambda x: jax.lax.scan(measured, 0.0, x)[1][2])(X)
    both = jax.make_jaxpr(lambda x: jax.lax.scan(measured, 0.0, x)[1][1:])(X)
    few, more = Precision(40), Precision(40)
    (sums,) = evaluate(few, program, [X])
    np.testing.assert_allclose(sums.astype(float), np.cumsum(X), rtol=1e-12)
    assert evaluate(more, both, [X], (True, False))[1] is None
    assert few.left > more.left
    with pytest.raises(Unconfirmed, match="nextafter"):
        evaluate(Precision(40), jax.make_jaxpr(lambda x: jax.lax.scan(measured, 0.0, x))(X), [X])


LAX = {
    **{
        name: (getattr(jax.lax, name), jnp.abs(X) / 3)
        for name in (
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "acosh",
            "atanh",
            "tan",
            "exp2",
            "erf_inv",
        )
    },
    "acosh": (lambda x: jax.lax.acosh(1 + jnp.abs(x)), X),
    "expm1": (lambda x: (jnp.expm1(x), jnp.expm1(9 * x), jnp.log1p(jnp.abs(x))), X),
    "erfc": (lambda x: (jax.lax.erfc(x), jax.lax.neg(x), jax.lax.ceil(x)), X),
    "polygamma": (lambda x: jax.lax.polygamma(jnp.ones(5), 1 + jnp.abs(x)), X),
    "igamma": (lambda x: (jax.lax.igamma(x, x + 1), jax.lax.igammac(x, x + 1)), jnp.abs(X)),
    "bessel": (lambda x: (jax.lax.bessel_i0e(x), jax.lax.bessel_i1e(x)), X),
    "comparisons": (lambda x: (x == x[0], x != x[0], x >= x[0], x <= x[0], x < x[0], x > x[0]), X),
    "extremes": (
        lambda x: (jnp.min(x), jnp.prod(x), jnp.argmin(x), jax.lax.cummin(x), jax.lax.cummax(x)),
        X,
    ),
    "zeta": (lambda x: jax.lax.zeta(1 + x, x), jnp.abs(X)),
    "slope of igamma": (
        jax.grad(lambda x: jax.lax.igamma(x, x[::-1]).sum()),
        jnp.abs(X[:2]),
    ),
    "complex": (lambda x: jnp.abs(jax.lax.complex(x, 2 * x)), X),
    "scatters": (
        lambda x: (
            x.at[1].min(0.0),
            x.at[1].max(0.0),
            x.at[1].multiply(3.0),
            x.at[1].subtract(3.0),
        ),
        X,
    ),
    "slices": (
        lambda x: (
            jax.lax.dynamic_slice(x, (1,), (2,)),
            jax.lax.dynamic_update_slice(x, x[:2], (3,)),
            jnp.split(x[:4], 2),
            jnp.isfinite(x),
            jnp.unstack(x),
            jnp.expand_dims(x, 0),
            x.astype(int),
            x.astype(bool),
        ),
        X,
    ),
}
"""What the cases above leave out."""


@pytest.mark.parametrize("name", LAX)
def test_a_primitive_agrees_with_jax(name):
    function, x = LAX[name]
    digits = evaluate(Precision(40), jax.make_jaxpr(function)(x), [x])
    for value, expected in zip(digits, jax.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(value.astype(float), expected, rtol=1e-12, atol=1e-13)


def primitives(program):
    """Names of the operations of a program and of those inside them."""
    for equation in getattr(program, "jaxpr", program).eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for part in value if isinstance(value, tuple) else (value,):
                if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                    yield from primitives(part)


def test_every_rule_is_tried():
    cases = {**LINEAR_ALGEBRA, **LOOPS, **FUNCTIONS, **MOVES, **LAX}
    tried = {p for f, x in cases.values() for p in primitives(jax.make_jaxpr(f)(x))}
    ruled = {*elementwise.RULES, *linear_algebra.RULES, *reductions.RULES, *reductions.SCATTERS}
    # Only inside comparators, in what JAX writes for derivatives, or under other names.
    internal = {"lt_to", "le_to", "eq_to", "add_any", "cbrt", "copy_p"}
    assert ruled - tried - internal == set()
    assert movement.MOVES - tried - {"squeeze", "expand_dims", "concatenate"} == set()


@pytest.mark.parametrize("name", ["add", "rem", "sign", "and", "not", "lt"])
def test_integers_are_those_of_jax(name):
    x, y = jnp.array([7, -7, 0]), jnp.array([3, 3, 5])
    operands = (x,) if name in ("sign", "not") else (x, y)
    renamed = {"and": "bitwise_and", "not": "bitwise_not"}
    expected = getattr(jax.lax, renamed.get(name, name))(*operands)
    result = integers.RULES[name]({}, *map(np.asarray, operands))
    np.testing.assert_array_equal(result, expected)


def test_sixty_digits_see_what_floats_lose():
    hilbert = jnp.asarray(1.0 / (np.arange(12)[:, None] + np.arange(12) + 1))
    program = jax.make_jaxpr(lambda a: (jnp.linalg.det(a), jnp.linalg.eigvalsh(a)))(hilbert)
    (det, values), (same, _) = (evaluate(Precision(d), program, [hilbert]) for d in (60, 90))
    product = values.prod()
    assert abs(det[()] / product - 1) < 1e-35
    assert abs(det[()] / same[()] - 1) < 1e-35


def test_numbers_that_do_not_exist_are_nan_and_unbounded_ones_infinite():
    program = jax.make_jaxpr(lambda x: (jnp.log(x), jnp.sqrt(x), 1 / (x + 1), jnp.exp(-1e30 * x)))(
        -1.0
    )
    log, root, over_zero, large = (v[()] for v in evaluate(Precision(60), program, [-1.0]))
    assert log != log
    assert root != root
    assert over_zero == large == float("inf")


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: jnp.sin(jax.lax.complex(x, x)).real, Unconfirmed, "complex128"),
        (lambda x: x.astype(jnp.float32), Unconfirmed, "numbers of float32"),
        (lambda x: jax.lax.fori_loop(0, 10**7, lambda i, c: c / 2, x), TooLongError, "too many"),
        (lambda x: jax.lax.nextafter(x, 2 * x), Unconfirmed, "'nextafter' has no rule"),
        (lambda x: (x / 0.0).astype(int), Unconfirmed, "'convert_element_type' fails in digits"),
    ],
)
def test_what_has_no_rule_is_named(function, error, words):
    program = jax.make_jaxpr(function)(X)
    with pytest.raises(error, match=words):
        evaluate(Precision(60, 10_000), program, [X])


def test_reductions_of_nothing_are_their_neutral_elements():
    empty = jnp.zeros((0, 2))
    program = jax.make_jaxpr(lambda x: (jnp.sum(x, 0), jnp.prod(x), x @ x.T, jnp.sum(x, 1)))(empty)
    total, product, square, rows = evaluate(Precision(60), program, [empty])
    assert total.tolist() == [0, 0]
    assert product == 1
    assert square.shape == (0, 0)
    assert rows.shape == (0,)
