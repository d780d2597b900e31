"""Identities proved along the paths of drawn instances; a false one is refused on its path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.proof import PATHS, Proof
from attlas.claims.statement import identity
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.identities import read_by
from attlas.verify.proofs.prover import proved_along_draws
from attlas.verify.proofs.recheck import recheck


def claim_of(sides, draw, *controls):
    def stated(x, y, *, factor=1.0):
        r"""$$f(x, y) = g(x, y)$$"""
        return sides(x, y, factor)

    controls = controls or (Control("double", factor=2.0),)
    return identity(sample=draw, count=16, alike=True, controls=list(controls))(stated)


def normal(rng, count):
    return {"x": rng.normal(size=(count, 6)), "y": np.exp(rng.normal(size=count))}


def proved(claim, **limit):
    with jax.enable_x64(True):
        batch = dict(claim.draw(0, claim.count))
        read = read_by(claim, {name: value[0] for name, value in batch.items()})
        return proved_along_draws(claim, batch, read, 0, **limit)


def large(x, y):
    """An expression that is not expanded, between 1 and 3 in size and of either sign."""
    return jnp.sum(x) ** 9 * jnp.sum(x[:3]) ** 9 / (1 + jnp.sum(x**2)) ** 9 / y


TRUE = {
    "many signs": lambda x, y, c: (
        jnp.sum(c * jnp.abs(x) ** y), jnp.sum(jnp.sign(x) * x * jnp.abs(x) ** (y - 1)),
    ),
    "many maxima": lambda x, y, c: (
        jnp.sum(c * jnp.maximum(x * y, 0)), y * jnp.sum(jnp.where(x > 0, x, 0)),
    ),
    "a softmax of large logits": lambda x, y, c: (
        jax.nn.softmax(c * jnp.sum(x) ** 9 * jnp.sum(x[:3]) ** 9 * x[:2] + y),
        jax.nn.softmax(x[:2] * jnp.sum(x) ** 9 * jnp.sum(x[:3]) ** 9),
    ),
    "the absolute value of a large expression": lambda x, y, c: (
        c * jnp.abs(large(x, y)), jnp.where(large(x, y) > 0, large(x, y), -large(x, y)),
    ),
    "the logarithm of large exponentials": lambda x, y, c: (
        c * jnp.log(1 + jnp.exp(large(x, y))), large(x, y) + jnp.log(1 + jnp.exp(-large(x, y))),
    ),
    "the exponential of large logarithms": lambda x, y, c: (
        c * jnp.exp(large(x, y) + jnp.log(1 + large(x, y) ** 2)),
        jnp.exp(large(x, y)) * (1 + large(x, y) ** 2),
    ),
    "the maximum of large expressions": lambda x, y, c: (
        c * jnp.max(jnp.exp(x) / (y + jnp.sum(jnp.exp(x)))),
        jnp.exp(jnp.max(x)) / (y + jnp.sum(jnp.exp(x))),
    ),
    "eigenvalues": lambda x, y, c: (
        jnp.sum(c * jnp.linalg.eigh(jnp.outer(x[:2], x[:2]) + y * jnp.eye(2))[0]),
        jnp.sum(x[:2] ** 2) + 2 * y,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_identities_are_proved_on_the_paths_of_draws(name):
    claim = claim_of(TRUE[name], normal)
    proof = proved(claim)
    assert proof.method == PATHS
    assert proof.at_random
    assert proof.certificate["bits"] > 150
    assert proof.domain.startswith("for all x of shape (6,), y on ")
    assert recheck(claim, Proof.read(proof.document()), seed=5) == ""


def test_an_identity_that_fails_on_the_path_of_one_draw_is_refused():
    def sides(x, y, factor):
        return factor * x.sum() * y, jnp.where(x[0] > 1, y + 1, y) * x.sum()

    claim = claim_of(sides, normal)
    outside = int((np.asarray(claim.draw(0, claim.count)["x"])[:, 0] > 1).sum())
    assert 0 < outside < claim.count / 2
    with pytest.raises(NotProvedError, match="does not vanish"):
        proved(claim)


@pytest.mark.parametrize("name", TRUE)
def test_no_control_is_proved(name):
    claim = claim_of(TRUE[name], normal, Control("none", factor=1.0))
    with pytest.raises(NotProvedError, match="would be proved too"):
        proved(claim)
    false = claim_of(lambda x, y, c: TRUE[name](x, y, 2.0 * c), normal, Control("0", factor=0.5))
    with pytest.raises(NotProvedError, match="does not vanish"):
        proved(false)


def test_a_control_on_a_proved_path_contradicts():
    claim = claim_of(lambda x, y, c: (x * y, y * x), normal, Control("others", sample=normal))
    with pytest.raises(NotProvedError, match="instances in its domain"):
        proved(claim)


def test_zeros_and_equal_entries_are_those_of_an_instance():
    def padded(rng, count):
        x = rng.normal(size=(count, 6)) * (np.arange(6) < rng.integers(1, 6, (count, 1)))
        return {"x": x, "y": rng.choice([-1.0, 1.0], size=count)}

    claim = claim_of(lambda x, y, c: (c * x.sum() * y**2, jnp.sum(jnp.where(x == 0, 0, x))), padded)
    proof = proved(claim)
    drawn = claim.draw(0, claim.count)
    ways = {((x != 0).tobytes(), y) for x, y in zip(*map(np.asarray, drawn.values()), strict=True)}
    assert f"on the {len(ways)} paths of 16 draws" in proof.domain


def test_whole_numbers_alone_are_no_symbols():
    def whole_numbers(rng, count):
        return {"x": np.rint(9 * rng.normal(size=(count, 6))), "y": np.ones(count)}

    claim = claim_of(lambda x, y, c: (c * x.sum() * y, y * x.sum()), whole_numbers)
    with pytest.raises(NotProvedError, match="no symbols"):
        proved(claim)


def test_an_instance_where_cases_meet_is_refused():
    def touching(rng, count):
        x = rng.normal(size=(count, 6))
        x[:, 1] = x[:, 0] ** 2
        return {"x": x, "y": np.exp(rng.normal(size=count))}

    claim = claim_of(
        lambda x, y, c: (c * jnp.where(x[1] > x[0] ** 2 * (1 + 2**-60), y, 2 * y), y), touching
    )
    with pytest.raises(NotProvedError):
        proved(claim)


def test_seconds_end_a_proof():
    with pytest.raises(NotProvedError, match="too long"):
        proved(claim_of(TRUE["many signs"], normal), seconds=-1.0)
