"""Inequalities that rotations leave as they are, singular values, and clipped norms."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.proof import Proof
from attlas.claims.statement import inequality
from attlas.verify.proofs.elements import Field, NotProvedError
from attlas.verify.proofs.exact_rules import RULES, Exact
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.gram import squares_of
from attlas.verify.proofs.points import Point
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.rotations import groups, is_rotation_invariant, turned
from attlas.verify.proofs.squares import proved_by_squares

length = jnp.linalg.norm


def claim_of(sample, sides):
    @inequality(sample=sample, controls=[Control("half of the right side", c=0.5)])
    def statement(x, y, *, c=1.0):
        r"""$$a \le b$$"""
        return sides(x, y, c)

    return statement


def vectors(rng, count):
    return {"x": rng.normal(size=(count, 3)), "y": rng.normal(size=(count, 3))}


def two(rng, count):
    return {"x": rng.normal(size=(count, 2, 2)), "y": rng.normal(size=(count, 2))}


def angles(x, y, c):
    return length(x / length(x) - y / length(y)), c * 2 * length(x - y) / (length(x) + length(y))


ROTATED = {
    "distance of directions": angles,
    "triangle": lambda x, y, c: (length(x + y), c * (length(x) + length(y))),
}
FALSE = {
    "half of it": (vectors, lambda x, y, c: angles(x, y, c / 2)),
    "true of the first axis alone": (vectors, lambda x, y, c: (-x[0], c * length(y) * 0)),
    "true of a triangle alone": (vectors, lambda x, y, c: (jnp.abs(x[2]) + 0 * y[0], 0.0 * c)),
    "a place beyond the end": (vectors, lambda x, y, c: (x[2] - x[1] + 0 * y[0], 0.0 * c)),
    "a norm of two rows": (two, lambda x, y, c: (length(x) + 0 * y[0], c * 1.2 * length(x, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", ROTATED)
def test_vectors_up_to_one_rotation(name):
    claim = claim_of(vectors, ROTATED[name])
    proof = proved_by_squares(claim)
    assert proof.certificate["rotated"]
    assert "all real x of shape (3,)" in proof.domain
    stored = Proof(**json.loads(json.dumps(vars(proof))))
    assert recheck(claim, stored, seed=3) == ""
    half = claim_of(vectors, lambda x, y, c: ROTATED[name](x, y, c / 2))
    assert recheck(half, stored) != ""


@pytest.mark.parametrize("name", FALSE)
def test_false_neighbours_are_not_proved(name):
    sample, sides = FALSE[name]
    with pytest.raises(NotProvedError):
        proved_by_squares(claim_of(sample, sides), seconds=3.0)


def test_a_proof_of_a_triangle_is_none_of_sides_that_depend_on_the_axes():
    claim = claim_of(vectors, ROTATED["triangle"])
    proof = proved_by_squares(claim)
    first = claim_of(vectors, lambda x, y, c: (-x[0] + length(y) * 0, c * length(y)))
    assert recheck(first, proof) != ""


def test_what_rotations_leave_as_it_is():
    arrays = {"x": np.ones(3), "y": np.ones(3), "s": np.ones(())}
    functions = {
        "inner": (lambda v: [v["x"] @ v["y"] * v["s"]], True),
        "lengths": (lambda v: [jnp.maximum(v["s"], length(v["x"]))], True),
        "kernel": (lambda v: [jnp.exp(-jnp.sum((v["x"] - v["y"]) ** 2) / v["s"])], True),
        "entry": (lambda v: [v["x"][0]], False),
        "sum": (lambda v: [v["x"].sum()], False),
        "fourth powers": (lambda v: [jnp.sum(v["x"] ** 4)], False),
        "absolute": (lambda v: [jnp.abs(v["x"]).sum()], False),
        "orientation": (lambda v: [jnp.cross(v["x"], v["y"])[2]], False),
        "compared": (lambda v: [jnp.where(v["x"] @ v["y"] > 0, 1.0, 0.0)], False),
    }  # fmt: skip
    for name, (function, expected) in functions.items():
        program = jax.make_jaxpr(function)(arrays)
        assert is_rotation_invariant(program, arrays, ["x", "y"]) == expected, name


def test_the_determinant_changes_its_sign_by_a_reflection():
    rows = {"M": np.eye(3)}

    def determinant(v):
        M = v["M"]
        return [M[0] @ jnp.cross(M[1], M[2])]

    squared = jax.make_jaxpr(lambda v: [determinant(v)[0] ** 2])(rows)
    assert is_rotation_invariant(squared, rows, ["M"])
    assert not is_rotation_invariant(jax.make_jaxpr(determinant)(rows), rows, ["M"])


def test_turned_vectors_keep_their_inner_products():
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=3), "W": rng.normal(size=(4, 3))}
    assert list(groups({name: v.shape for name, v in arrays.items()})) == [["x", "W"]]
    rows = [np.vstack([v["x"], v["W"]]) for v in (arrays, turned(arrays))]
    np.testing.assert_allclose(rows[0] @ rows[0].T, rows[1] @ rows[1].T, atol=1e-12)
    assert (np.diagonal(rows[1]) > 0).all()
    np.testing.assert_allclose(np.triu(rows[1][:3], 1), 0)


def test_a_spectral_norm_of_two_rows():
    claim = claim_of(two, lambda x, y, c: (length(x, 2) + 0 * y[0], c * length(x)))
    proof = proved_by_squares(claim)
    assert recheck(claim, proof, seed=2) == ""


def test_singular_values_of_two_rows_are_those_of_floats():
    exact = Exact(Functions(Field(Point("0"))))
    for matrix in ([[3.0, 0.0], [4.0, 5.0]], [[0.0, 2.0], [1.0, 0.0]], [[3.0, 4.0]]):
        details = {"compute_uv": False, "full_matrices": True, "subset_by_index": None}
        (values,) = RULES["svd"](exact, details, exact.exact(matrix))
        squares = [float((value * value).expanded().constant() or 0) for value in values]
        expected = np.linalg.svd(np.array(matrix), compute_uv=False)
        np.testing.assert_allclose(np.sqrt(squares), expected, rtol=1e-12)


def test_coefficients_beyond_the_range_of_floats_end_in_a_reason():
    large = {((0, 1),): 10**400}
    assert squares_of({((0, 1),): 1}, (large,)) is None
    claim = claim_of(vectors, lambda x, y, c: (length(x), c * 1e200 * length(x) * 1e200 + 0 * y[0]))
    with pytest.raises(NotProvedError, match="'half of the right side' would be proved too"):
        proved_by_squares(claim)


def test_a_case_of_a_clipped_norm_knows_how_long_its_vector_is():
    def sides(x, y, c):
        return length(x) + 0 * y[0], c * jnp.maximum(1.0, length(x)) ** 2

    claim = claim_of(vectors, sides)
    assert recheck(claim, proved_by_squares(claim)) == ""
    with pytest.raises(NotProvedError):
        proved_by_squares(claim_of(vectors, lambda x, y, c: sides(x, y, 0.9 * c)))
