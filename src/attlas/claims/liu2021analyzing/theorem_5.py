r"""Theorem 5: the scaling orbit T_alpha (W1, w2) = (alpha W1, w2 / alpha), and its Hessians.

theta = (W1, w2); W_Q, W_K and W_V stay, so the attended values v_i = vec(W_V x_i A_i) do.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.liu2021analyzing.landscape_instances import (
    ROUNDINGS,
    UNITS,
    VALUES,
    WORDS,
    attended,
    network,
    networks,
    on_the_orbit,
)
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.measures.curvature.orbit_flatness import rescaled_layers

_PAPER = "liu2021analyzing"

_ZERO_LOSS = Assumption("a minimum, of zero loss", lambda i: jnp.all(i["noise"] == 0))

_FIRST = VALUES * WORDS * UNITS
"""Parameters of W1, p d_v d; w2 has d."""


def _scaled(instance: Instance, beta: Float[Array, ""]) -> Instance:
    """The network with W1 times alpha and w2 times beta."""
    return {**instance, "W1": instance["alpha"] * instance["W1"], "w2": beta * instance["w2"]}


def _outputs(instance: Instance, beta: Float[Array, ""]) -> Sides:
    moved = jax.vmap(network(_scaled(instance, beta)))(instance["x"])
    here = jax.vmap(network(instance))(instance["x"])
    size = jnp.abs(attended(instance)) @ jnp.abs(instance["W1"]) @ jnp.abs(instance["w2"])
    return Sides(moved, here, size)


ORBIT = Claim(
    name=f"{_PAPER}/theorem-5-orbit",
    paper=_PAPER,
    locator="Proof of Theorem 5, T_alpha",
    statement=(
        r"(\alpha^{-1} w^{(2)})^\top \phi(\langle \alpha w^{(1)}, \mathrm{vec}(w_V x a) \rangle) ="
        r"w^{(2)\top} \phi(\langle w^{(1)}, \mathrm{vec}(w_V x a) \rangle), \quad \alpha > 0"
    ),
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=networks,
    sides=lambda i: _outputs(i, 1 / i["alpha"]),
    control=Control("w2 over the square of alpha", lambda i: _outputs(i, 1 / i["alpha"] ** 2)),
    count=40,
    terms=ROUNDINGS,
    note="For the ReLU. With softplus, by which section 2 replaces it, see theorem-5-softplus.",
)


def _determinant(instance: Instance, power: int) -> Sides:
    flat, unravel = ravel_pytree((instance["W1"], instance["w2"]))
    scale = instance["alpha"]

    def moved(z: Float[Array, " P"]) -> Float[Array, " P"]:
        first, second = unravel(z)
        return ravel_pytree(rescaled_layers(first, second, scale))[0]

    matrix = jax.jacfwd(moved)(flat)
    right = power * jnp.log(scale)
    size = (_FIRST + UNITS) * jnp.abs(jnp.log(scale))
    return Sides(jnp.linalg.slogdet(matrix)[1], right, size)


JACOBIAN = Claim(
    name=f"{_PAPER}/theorem-5-jacobian",
    paper=_PAPER,
    locator="Proof of Theorem 5, the determinant of T_alpha",
    statement=r"\log |\det D T_\alpha| = (p d_v - 1) d \log \alpha",
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=networks,
    sides=lambda i: _determinant(i, _FIRST - UNITS),
    control=Control("without w2's part", lambda i: _determinant(i, _FIRST)),
    count=40,
    terms=ROUNDINGS,
    note=(
        "p d_v d - d = 2 here. For p d_v = 1 it is 0, and T_alpha preserves volumes: there 'as "
        "p d_v d >= d, the determinant goes to infinity' fails. The conclusion still holds: the "
        "orbit has infinitely many disjoint images of one ball, all in the set."
    ),
)


def _stretch(instance: Instance) -> Float[Array, " P"]:
    """The diagonal (1/alpha, alpha) of the Hessian's transform."""
    alpha = instance["alpha"]
    return jnp.concatenate([jnp.full(_FIRST, 1 / alpha), jnp.full(UNITS, alpha)])


def _transformed(instance: Instance, diagonal: Float[Array, " P"]) -> Sides:
    # Every term of an entry at theta is below this, and scales with its entry.
    values = jnp.linalg.norm(instance["v"], axis=1)
    sizes = jnp.linalg.norm(instance["W1"]), jnp.linalg.norm(instance["w2"])
    term = jnp.mean(values**2) * (sizes[0] ** 2 + sizes[1] ** 2)
    term += jnp.mean(values * (values * sizes[0] * sizes[1] + jnp.abs(instance["y"])))
    own = _stretch(instance)
    moved = diagonal[:, None] * instance["H"] * diagonal[None, :]
    return Sides(instance["H_alpha"], moved, term * own[:, None] * own[None, :])


HESSIAN = Claim(
    name=f"{_PAPER}/theorem-5-hessian",
    paper=_PAPER,
    locator="Proof of Theorem 5, the Hessian",
    statement=(
        r"\nabla^2 L(T_\alpha(\theta)) = D \nabla^2 L(\theta) D,"
        r"\quad D = \mathrm{diag}(\alpha^{-1} I, \alpha I)"
    ),
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=on_the_orbit,
    sides=lambda i: _transformed(i, _stretch(i)),
    control=Control("D and its inverse exchanged", lambda i: _transformed(i, 1 / _stretch(i))),
    count=64,
    terms=ROUNDINGS,
    note=(
        "In (w1, w2), where no unit is at its kink; half of the points are minima of zero loss. "
        "Both Hessians are derivatives of the risk, at theta and at T_alpha(theta)."
    ),
)


def _top(matrix: Float[Array, "k k"]) -> Float[Array, ""]:
    return jnp.linalg.eigvalsh(matrix)[-1]


def _eigenvalue(instance: Instance, part: str) -> Sides:
    block = instance["H"][:_FIRST, :_FIRST]
    flat = {
        "diagonal": lambda: jnp.max(jnp.diag(block)),
        "block": lambda: _top(block),
        "whole": lambda: _top(instance["H"]),
    }[part]()
    right = _top(instance["H_alpha"])
    # LAPACK's eigenvalues err by rounding of the matrix's norm.
    return Sides(flat / instance["alpha"] ** 2, right, jnp.linalg.norm(instance["H_alpha"]))


_CURVED: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": on_the_orbit,
    "count": 64,
    "terms": ROUNDINGS,
}

EIGENVALUE = Claim(
    name=f"{_PAPER}/theorem-5-eigenvalue",
    locator="Proof of Theorem 5, the largest eigenvalue",
    statement=(
        r"\alpha^{-2} \delta \le \lambda_{\max} (\nabla^2 L(T_\alpha(\theta))),"
        r"\quad \delta = \max_j \nabla^2_{w^{(1)} w^{(1)}} L(\theta)_{jj}"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=lambda i: _eigenvalue(i, "diagonal"),
    control=Control("the whole Hessian's eigenvalue", lambda i: _eigenvalue(i, "whole")),
    ledger=Link("Theorem 5", 1),
    note="Nearly attained for small alpha, where w1's block is all that is left.",
    **_CURVED,
)

EIGENVALUE_BLOCK = Claim(
    name=f"{_PAPER}/theorem-5-eigenvalue-block",
    locator="Proof of Theorem 5, the largest eigenvalue, sharpened",
    statement=(
        r"\alpha^{-2} \lambda_{\max} (\nabla^2_{w^{(1)} w^{(1)}} L(\theta)) \le"
        r"\lambda_{\max} (\nabla^2 L(T_\alpha(\theta)))"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=lambda i: _eigenvalue(i, "block"),
    control=Control("the whole Hessian's eigenvalue", lambda i: _eigenvalue(i, "whole")),
    note="Attained in the limit of small alpha: the divergence is exactly alpha^-2.",
    **_CURVED,
)


def _in_balls(instance: Instance, with_first: bool) -> Sides:
    sizes = [instance["alpha"] * jnp.linalg.norm(instance["W1"])]
    sizes.append(jnp.linalg.norm(instance["w2"]) / instance["alpha"])
    square = sizes[1] ** 2 + (sizes[0] ** 2 if with_first else 0.0)
    bound = square * jnp.mean(jnp.sum(instance["v"] ** 2, axis=1))
    return Sides(_top(instance["H_alpha"]), bound, jnp.linalg.norm(instance["H_alpha"]))


IN_BALLS = Claim(
    name=f"{_PAPER}/theorem-5-balls",
    locator="Section 4.2 and appendix C.2, with l2 balls",
    statement=(
        r"L(\theta) = 0, \|w^{(1)}\|_F \le C_1, \|w^{(2)}\|_2 \le C_2: \quad \lambda_{\max}"
        r"(\nabla^2 L(\theta)) \le (C_1^2 + C_2^2) \tfrac1n \sum_i \|\mathrm{vec}(w_V x_i a_i)\|^2"
    ),
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    sides=lambda i: _in_balls(i, True),
    control=Control("C_2 alone", lambda i: _in_balls(i, False)),
    assumptions=(_ZERO_LOSS,),
    note=(
        "All over the orbit, the balls being those that the point reaches. Attained by one unit "
        "along one attended value. So balls do remove the sharp minima, as the paper says, in "
        "(w1, w2)."
    ),
    **_CURVED,
)


def _exists(instance: Instance, free: bool) -> Sides:
    """M against the eigenvalue at alpha = (delta / M)^(1/2), or at the least alpha in the balls."""
    delta = jnp.max(jnp.diag(instance["H"][:_FIRST, :_FIRST]))
    M = delta * instance["alpha"] ** 2 * 1e6
    alpha = jnp.sqrt(delta / M) if free else jnp.asarray(0.5)
    stretch = _stretch({"alpha": alpha})
    matrix = stretch[:, None] * instance["H"] * stretch[None, :]
    return Sides(M, _top(matrix), jnp.linalg.norm(matrix))


SHARP_MINIMA = Claim(
    name=f"{_PAPER}/theorem-5-sharpness",
    paper=_PAPER,
    locator="Theorem 5, second statement",
    statement=(
        r"\forall M\ \exists \alpha: \quad M \le \lambda_{\max} (\nabla^2 L(T_\alpha(\theta)))"
    ),
    kind=Kind.EXISTENCE,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.FOUND,
    instances=on_the_orbit,
    sides=lambda i: _exists(i, True),
    control=Control(
        "with balls of twice the layers' norms, so that alpha is 1/2 at least",
        lambda i: _exists(i, False),
    ),
    assumptions=(_ZERO_LOSS, Assumption("some unit is active on some sample", lambda i: i["live"])),
    count=64,
    terms=ROUNDINGS,
    note=(
        "M from 1 to 10^12 times the largest diagonal element delta; the Hessian on the orbit is "
        "that of theorem-5-hessian. The print asks for layers "
        "that are not zero; that does not make delta positive, see theorem-5-dead-units."
    ),
)


def _dead() -> Witness:
    """Layers that are not zero, positive attended values, labels 0: every unit is off."""
    return {"W1": -np.ones((2, 2)), "w2": np.ones(2), "v": np.ones((4, 2))}


def _delta(instance: Instance, sign: float) -> Sides:
    # Diagonal of w1's block: means of (w2_i v_k 1[z_i > 0])^2.
    on = jnp.where(sign * instance["v"] @ instance["W1"] > 0, 1.0, 0.0)
    slopes = instance["w2"][None, None, :] * instance["v"][:, :, None] * on[:, None, :]
    return Sides(jnp.asarray(1e-9), jnp.max(jnp.mean(slopes**2, axis=0)))


def _dead_instances(key: PRNGKeyArray, count: int) -> Instance:
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _dead().items()}


DEAD_UNITS = Claim(
    name=f"{_PAPER}/theorem-5-dead-units",
    paper=_PAPER,
    locator="Proof of Theorem 5, 'we assume a positive diagonal element'",
    statement=(
        r"w^{(i)} \ne 0 \Rightarrow \exists j: \quad 0 < \nabla^2_{w^{(1)} w^{(1)}} L(\theta)_{jj}"
    ),
    kind=Kind.EXISTENCE,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.DERIVED,
    instances=_dead_instances,
    sides=lambda i: _delta(i, 1.0),
    witness=_dead,
    control=Control(
        "the signs of W1 changed: units are on",
        lambda i: _delta(i, -1.0),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "dead units: a minimum whose orbit is flat throughout"),
    terms=ROUNDINGS,
    note=(
        "Labels 0 and units that are off on all samples: a minimum with layers that are not zero "
        "where the risk is constant nearby. The proof assumes the element, the theorem does not. "
        "The data have other minima with active units, from which the sharp ones come."
    ),
)
