"""Every primitive of JAX has a rule in digits or a stated reason; functions of JAX agree."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest

from attlas.verify.digits import fourier, interpreter, movement, omissions, reductions
from attlas.verify.digits.interpreter import evaluate, uncovered
from attlas.verify.digits.omissions import OF_INTEGERS, OMISSIONS
from attlas.verify.digits.precision import Precision, Unconfirmed

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=6))
MATRIX = jnp.asarray(RNG.normal(size=(4, 6)))
POSITIVE = jnp.exp(X)
RULED = {*interpreter.RULES, *interpreter._LOOPS, *movement.MOVES, *movement.UNCHANGED}
RULED |= reductions.SCATTERS.keys()


def primitives():
    """The names of all primitives that jax.lax and jax.lax.linalg offer."""
    modules = (jax.lax, jax.lax.linalg)
    return {getattr(m, n).name for m in modules for n in dir(m) if n.endswith("_p")}


def test_every_primitive_has_a_rule_or_a_reason():
    names = primitives()
    assert len(names) > 150
    assert names - RULED - OMISSIONS.keys() - OF_INTEGERS == set()


def test_a_reason_is_of_a_primitive_without_a_rule():
    assert OMISSIONS.keys() - primitives() == set()
    assert OMISSIONS.keys() & RULED == set()
    assert OMISSIONS.keys() & OF_INTEGERS == set()
    assert all(omissions.OMISSIONS.values())


def parts(z):
    return jnp.real(z), jnp.imag(z), jnp.abs(z)


TRANSFORMS = {
    "fft": (lambda x: parts(jnp.fft.fft(x)), X),
    "fft of a prime length": (lambda x: parts(jnp.fft.fft(x, n=7)), X),
    "ifft": (lambda x: parts(jnp.fft.ifft(jax.lax.complex(x, 2 * x[::-1]))), X),
    "rfft": (lambda x: parts(jnp.fft.rfft(x)), X),
    "irfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) ** 2 * jnp.asarray(1 + 1j)), X),
    "irfft, odd": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 5), X),
    "hfft": (lambda x: jnp.fft.hfft(jax.lax.complex(x, 0 * x)), X),
    "ihfft": (lambda x: parts(jnp.fft.ihfft(x)), X),
    "fft2": (lambda x: parts(jnp.fft.fft2(x)), MATRIX),
    "ifftn": (lambda x: parts(jnp.fft.ifftn(x)), MATRIX),
    "rfftn": (lambda x: parts(jnp.fft.rfftn(x)), MATRIX),
    "irfftn": (lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x) / jnp.asarray(2 + 1j)), MATRIX),
    "rfft2, longer": (lambda x: parts(jnp.fft.rfft2(x, s=(3, 7))), MATRIX),
    "derivative": (jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 4)), X),
    "convolve": (lambda x: jnp.convolve(x, x[:3], mode="same"), X),
    "correlate": (lambda x: jnp.correlate(x, x[:3]), X),
    "convolve2d": (lambda x: jsp.signal.convolve2d(x, x[:2, :2]), MATRIX),
    "fftconvolve": (lambda x: jsp.signal.fftconvolve(x, x[:3]), X),
    "groups": (
        lambda x: jax.lax.conv_general_dilated(
            x.reshape(1, 2, 12), x.reshape(4, 1, 6)[:, :, :3], (2,), [(1, 2)],
            lhs_dilation=(2,), rhs_dilation=(2,), feature_group_count=2,
        ),
        MATRIX,
    ),
    "mean pool": (
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 3), (1, 2), "SAME"), MATRIX,
    ),
    "largest pool": (
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID"), MATRIX,
    ),
}  # fmt: skip
GAMMA = {
    "zeta": (lambda x: jsp.special.zeta(1 + x, x), POSITIVE),
    "lower gamma": (lambda x: jsp.special.gammainc(x, x[::-1]), POSITIVE),
    "upper gamma": (lambda x: jsp.special.gammaincc(x, x[::-1]), POSITIVE),
    "its order": (jax.grad(lambda x: jsp.special.gammainc(x, x[::-1]).sum()), POSITIVE[:2]),
    "beta": (lambda x: jsp.special.betainc(x, x[::-1], jax.nn.sigmoid(x)), POSITIVE),
    "polygamma": (lambda x: jsp.special.polygamma(2, x), POSITIVE),
    "gamma": (jsp.special.gamma, X),
    "exponential integral": (jsp.special.expi, POSITIVE[:2]),
}


@pytest.mark.parametrize("name", [*TRANSFORMS, *GAMMA])
def test_a_rule_agrees_with_jax(name):
    function, x = (TRANSFORMS | GAMMA)[name]
    program = jax.make_jaxpr(function)(x)
    assert uncovered(program) == set()
    digits = evaluate(Precision(40), program, [np.asarray(x)])
    for exact, value in zip(digits, jax.tree.leaves(function(x)), strict=True):
        assert np.asarray(exact).astype(float) == pytest.approx(np.asarray(value), 1e-9, 1e-12)


def test_a_transform_and_back_is_exact_to_many_digits():
    sixty = Precision(60)
    values = sixty.exact(np.asarray(X))
    program = jax.make_jaxpr(lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 6))(X)
    (back,) = evaluate(sixty, program, [values])
    assert max(abs(back - values)) < 1e-55
    assert fourier.RULES.keys() <= RULED


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (jsp.special.gammainc, (1.5, 0.0)),
        (jsp.special.gammaincc, (1.5, np.inf)),
        (jsp.special.gammainc, (-1.0, 2.0)),
        (jsp.special.betainc, (1.0, 2.0, 1.0)),
        (jsp.special.betainc, (1.0, 2.0, 1.5)),
        (jax.lax.zeta, (1.0, 2.0)),
        (jax.lax.zeta, (0.5, 2.0)),
        (jax.lax.polygamma, (0.3, 0.7)),
    ],
)
def test_ends_of_a_domain_are_those_of_jax(function, arguments):
    program = jax.make_jaxpr(function)(*arguments)
    (exact,) = evaluate(Precision(40), program, list(map(np.asarray, arguments)))
    assert float(exact[()]) == pytest.approx(float(function(*arguments)), nan_ok=True)


def test_a_loop_whose_instances_end_apart_is_that_of_each():
    def halved(x):
        return jax.lax.while_loop(lambda c: c > 0.1, lambda c: c / 2, x)

    at = jnp.array([3.0, 0.05, 0.7])
    (exact,) = evaluate(Precision(40), jax.make_jaxpr(jax.vmap(halved))(at), [np.asarray(at)])
    assert exact.astype(float).tolist() == [float(halved(x)) for x in at]


def test_an_operation_without_a_rule_says_why():
    program = jax.make_jaxpr(lambda x: jnp.nextafter(jnp.sin(x), x))(1.0)
    with pytest.raises(Unconfirmed, match="made of the bits of a float"):
        evaluate(Precision(40), program, [np.asarray(1.0)])


def functions():
    """Functions of JAX that take one or two arrays, with their programs."""
    arrays = [jnp.asarray(v) for v in ([0.3, 0.6], [0.7, 0.2])]
    for module in (jnp, jax.nn, jsp.special):
        for name, function in inspect.getmembers(module, callable):
            if name.startswith("_") or isinstance(function, type):
                continue
            for count in (1, 2):
                try:
                    program = jax.make_jaxpr(function)(*arrays[:count])
                    value = jax.tree.leaves(function(*arrays[:count]))
                except Exception:  # noqa: BLE001, S112 - it takes other arguments
                    continue
                yield f"{module.__name__}.{name}", program, arrays[:count], value
                break


@pytest.mark.thorough
def test_functions_of_jax_agree_in_digits():
    different, seen = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, program, arrays, values in functions():
            seen += 1
            try:
                outputs = evaluate(Precision(40), program, list(map(np.asarray, arrays)))
            except Unconfirmed as reason:
                if "float32" not in str(reason) and uncovered(program) - OMISSIONS.keys():
                    different.append(f"{name}: {reason}")
                continue
            for exact, value in zip(outputs, values, strict=True):
                exact = np.asarray(exact).astype(np.asarray(value).dtype)
                if not np.allclose(exact, value, 1e-9, 1e-12, equal_nan=True):
                    different.append(f"{name}: {exact} is not {value}")
    assert seen > 200
    assert different == []
