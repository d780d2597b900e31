"""Boxes are enclosed one by one, plain programs are the same functions, and searches end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.interval_rules import as_interval
from attlas.verify.intervals import Undecided
from attlas.verify.proofs.box_search import BoxProgram, Coordinate, search
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.enclosure import BOXES, Enclosure
from attlas.verify.proofs.plain_program import plain

RNG = np.random.default_rng(0)
FUNCTIONS = {
    "softmax": lambda x: jax.nn.softmax(x)[0],
    "log softmax": lambda x: jax.nn.log_softmax(x)[1],
    "logsumexp": jax.nn.logsumexp,
    "softplus": lambda x: jax.nn.softplus(x).sum(),
    "relu": lambda x: jax.nn.relu(x).sum(),
    "median": lambda x: jnp.sort(x)[1],
    "extremes": lambda x: x.max() - x.min(),
    "loop": lambda x: jax.lax.scan(lambda c, v: (c * v + 1, c), 1.0, x)[0],
}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True), np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_plain_program_is_the_same_function_with_the_same_derivative(name):
    function, point = FUNCTIONS[name], jnp.asarray(RNG.normal(size=3))
    program = jax.make_jaxpr(function)(point)

    def rewritten(x):
        return plain(program, x)[0]

    assert np.allclose(rewritten(point), function(point), atol=1e-13)
    assert np.allclose(jax.grad(rewritten)(point), jax.grad(function)(point), atol=1e-13)


def test_a_plain_program_has_the_derivative_that_was_stopped():
    program = jax.make_jaxpr(lambda x: jax.lax.stop_gradient(x**2))(2.0)
    assert jax.grad(lambda x: plain(program, x)[0])(2.0) == 4


def test_a_loop_of_unknown_length_has_no_plain_program():
    program = jax.make_jaxpr(lambda x: jax.lax.while_loop(lambda c: c < 9, lambda c: 2 * c, x))(1.0)
    with pytest.raises(Undecided, match="'while'"):
        plain(program, 1.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_boxes_enclose_values_and_slopes(name):
    points = jnp.ones((BOXES, 3))
    program = jax.make_jaxpr(FUNCTIONS[name])(jnp.ones(3))

    def rewritten(x):
        return plain(program, x)[0]

    low = RNG.normal(size=(BOXES, 3))
    high = low + RNG.choice([0.01, 1.0], size=(BOXES, 3))
    inside = jnp.asarray(RNG.uniform(low, high))
    for function, slopes in ((rewritten, False), (jax.jacfwd(rewritten), True)):
        batched = jax.make_jaxpr(jax.vmap(function))(points)
        (outputs,) = Enclosure(slopes=slopes).outputs(batched, low, high)
        values = np.asarray(jax.vmap(function)(inside))
        assert (as_interval(outputs).low <= values + 1e-12).all()
        assert (as_interval(outputs).high >= values - 1e-12).all()


def test_jumps_are_named_in_the_boxes_where_they_may_be():
    program = jax.make_jaxpr(jax.vmap(lambda x: jnp.where(x[0] > 0, 1.0, 0.0)))(
        jnp.ones((BOXES, 1))
    )
    low = np.linspace(-1, 1, BOXES)[:, None]
    enclosure = Enclosure()
    enclosure.outputs(program, low, low + 0.1)
    assert (enclosure.jumps == ((low <= 0) & (low + 0.1 > 0))[:, 0]).all()


@inequality(
    sample=lambda rng, count: {"x": rng.uniform(0, 1, size=count)},
    controls=[Control("halved", factor=0.5)],
    not_attacked="a test",
)
def parabola(x, *, factor=1.0):
    r"""$$4x(1 - x) \le 1$$, attained at 1/2."""
    return 4 * x * (1 - x), factor + 0 * x


def program_of(factor):
    fixed = {"x": np.array(0.0)}
    return BoxProgram(parabola, (Coordinate("x", ()),), fixed, {"factor": factor})


def test_a_search_ends_with_parts_or_a_violation():
    ends = np.array([0.0]), np.array([1.0])
    assert search(program_of(1.001), *ends, seconds=60.0) > 1
    with pytest.raises(NotProvedError, match="left exceeds right at"):
        search(program_of(0.999), *ends, seconds=60.0)
