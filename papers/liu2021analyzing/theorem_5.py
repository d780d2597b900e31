r"""Theorem 5: the scaling orbit of theta = (W1, w2), and its Hessians.

T_alpha leaves W_Q, W_K and W_V as they are, and so the attended values v_i = vec(W_V x_i A_i).
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.claims.claim import Control, Kind, ProofStep, Sides, Source, Status, assume
from attlas.claims.statement import erratum, existence, identity, inequality
from liu2021analyzing.landscape_instances import (
    ROUNDINGS,
    UNITS,
    VALUES,
    WORDS,
    attended,
    networks,
    on_the_orbit,
)
from liu2021analyzing.library.measures.orbit_flatness import rescaled_layers
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer

# Parameters of W1, p d_v d; w2 has d.
_FIRST = VALUES * WORDS * UNITS

SMOOTH = assume("no unit is at its kink", lambda smooth: smooth)
A_MINIMUM = assume("a minimum, of zero loss", lambda noise: jnp.all(noise == 0))


def top(matrix):
    """Largest eigenvalue."""
    return jnp.linalg.eigvalsh(matrix)[-1]


def stretch(alpha):
    """The diagonal (1/alpha, alpha) of the Hessian's transform."""
    return jnp.concatenate([jnp.full(_FIRST, 1 / alpha), jnp.full(UNITS, alpha)])


@identity(
    r"Proof of Theorem 5, $T_\alpha$",
    Source.FOUND,
    sample=networks,
    count=40,
    roundings=ROUNDINGS,
    controls=[Control(r"$w^{(2)}$ over the square of $\alpha$", power=2)],
)
def theorem_5_orbit(x, W_Q, W_K, W_V, W1, w2, alpha, *, power=1):
    r"""$$(\alpha^{-1} w^{(2)})^\top \phi(\langle \alpha w^{(1)}, \mathrm{vec}(w_V x a) \rangle) =
    w^{(2)\top} \phi(\langle w^{(1)}, \mathrm{vec}(w_V x a) \rangle), \quad \alpha > 0$$

    For the ReLU. With softplus, by which section 2 replaces it, see theorem-5-softplus.
    """
    model = SelfAttentionMLP(W_Q, W_K, W_V, W1, w2)
    there = SelfAttentionMLP(W_Q, W_K, W_V, alpha * W1, 1 / alpha**power * w2)
    size = jnp.abs(attended(model, x)) @ jnp.abs(W1) @ jnp.abs(w2)
    return Sides(jax.vmap(there)(x), jax.vmap(model)(x), size)


@identity(
    r"Proof of Theorem 5, the determinant of $T_\alpha$",
    Source.FOUND,
    sample=networks,
    count=40,
    roundings=ROUNDINGS,
    controls=[Control("without the part of $w^{(2)}$", power=_FIRST)],
)
def theorem_5_jacobian(W1, w2, alpha, *, power=_FIRST - UNITS):
    r"""$$\log |\det D T_\alpha| = (p d_v - 1) d \log \alpha$$

    $p d_v d - d = 2$ here. For $p d_v = 1$ it is 0, and $T_\alpha$ preserves volumes: there 'as
    $p d_v d \ge d$, the determinant goes to infinity' fails. The conclusion still holds: the orbit
    has infinitely many disjoint images of one ball, all in the set.
    """
    flat, unravel = ravel_pytree((W1, w2))

    def moved(z):
        first, second = unravel(z)
        return ravel_pytree(rescaled_layers(first, second, alpha))[0]

    log_determinant = jnp.linalg.slogdet(jax.jacfwd(moved)(flat))[1]
    size = flat.size * (1 + jnp.abs(jnp.log(alpha)))  # the rounding of alpha is in every entry
    return Sides(log_determinant, power * jnp.log(alpha), size)


@identity(
    "Proof of Theorem 5, the Hessian",
    Source.FOUND,
    sample=on_the_orbit,
    alike=True,
    roundings=ROUNDINGS,
    assumptions=[SMOOTH],
    controls=[Control("$D$ and its inverse exchanged", exchanged=True)],
)
def theorem_5_hessian(H, H_alpha, alpha, W1, w2, v, y, *, exchanged=False):
    r"""$$\nabla^2 L(T_\alpha(\theta)) = D \nabla^2 L(\theta) D,
    \quad D = \mathrm{diag}(\alpha^{-1} I, \alpha I)$$

    In $(w^{(1)}, w^{(2)})$, where no unit is at its kink; half of the points are minima of zero
    loss. Both Hessians are derivatives of the risk, at $\theta$ and at $T_\alpha(\theta)$.
    """
    diagonal = stretch(alpha)
    D = 1 / diagonal if exchanged else diagonal
    # Every term of an entry at theta is below this, and scales with its entry.
    values = jnp.linalg.norm(v, axis=1)
    first, second = jnp.linalg.norm(W1), jnp.linalg.norm(w2)
    term = jnp.mean(values**2) * (first**2 + second**2)
    term += jnp.mean(values * (values * first * second + jnp.abs(y)))
    return Sides(H_alpha, D[:, None] * H * D[None, :], term * diagonal[:, None] * diagonal[None, :])


curved = partial(inequality, sample=on_the_orbit, roundings=ROUNDINGS, assumptions=[SMOOTH])


@curved(
    "Proof of Theorem 5, the largest eigenvalue",
    Source.FOUND,
    proof_step=ProofStep("Theorem 5", 1),
    controls=[
        Control("the whole Hessian's eigenvalue", whole=True),
        Control("the sum over $j$ in place of the largest", summed=True),
    ],
    evaluations=1088,
)
def theorem_5_eigenvalue(H, H_alpha, alpha, *, whole=False, summed=False):
    r"""$$\alpha^{-2} \delta \le \lambda_{\max} (\nabla^2 L(T_\alpha(\theta))),
    \quad \delta = \max_j \nabla^2_{w^{(1)} w^{(1)}} L(\theta)_{jj}$$

    Nearly attained for small $\alpha$, where the block of $w^{(1)}$ is all that is left.
    """
    diagonal = jnp.diag(H[:_FIRST, :_FIRST])
    delta = top(H) if whole else jnp.sum(diagonal) if summed else jnp.max(diagonal)
    # LAPACK's eigenvalues err by rounding of the matrix's norm.
    return Sides(delta / alpha**2, top(H_alpha), jnp.linalg.norm(H_alpha))


@curved(
    "Proof of Theorem 5, the largest eigenvalue, sharpened",
    status=Status.SHARPENED,
    controls=[
        Control("the whole Hessian's eigenvalue", whole=True),
        Control("the trace of the block", trace=True),
    ],
    evaluations=832,
)
def theorem_5_eigenvalue_block(H, H_alpha, alpha, *, whole=False, trace=False):
    r"""$$\alpha^{-2} \lambda_{\max} (\nabla^2_{w^{(1)} w^{(1)}} L(\theta)) \le
    \lambda_{\max} (\nabla^2 L(T_\alpha(\theta)))$$

    Attained in the limit of small $\alpha$: the divergence is exactly $\alpha^{-2}$.
    """
    block = H[:_FIRST, :_FIRST]
    flat = top(H) if whole else jnp.trace(block) if trace else top(block)
    return Sides(flat / alpha**2, top(H_alpha), jnp.linalg.norm(H_alpha))


@curved(
    "Section 4.2 and appendix C.2, with l2 balls",
    status=Status.NEW,
    assumptions=[SMOOTH, A_MINIMUM],
    controls=[
        Control("$C_2$ alone", with_first=0.0),
        Control("nine tenths of the bound", share=0.9),
    ],
    evaluations=576,
)
def theorem_5_balls(H_alpha, alpha, W1, w2, v, *, with_first=1.0, share=1.0):
    r"""$$L(\theta) = 0, \|w^{(1)}\|_F \le C_1, \|w^{(2)}\|_2 \le C_2: \quad \lambda_{\max}
    (\nabla^2 L(\theta)) \le (C_1^2 + C_2^2) \tfrac1n \sum_i \|\mathrm{vec}(w_V x_i a_i)\|^2$$

    All over the orbit, the balls being those that the point reaches. Attained by one unit along
    one attended value. So balls do remove the sharp minima, as the paper says, in
    $(w^{(1)}, w^{(2)})$.
    """
    C_1, C_2 = alpha * jnp.linalg.norm(W1), jnp.linalg.norm(w2) / alpha
    bound = (C_2**2 + with_first * C_1**2) * jnp.mean(jnp.sum(v**2, axis=1))
    return Sides(top(H_alpha), share * bound, jnp.linalg.norm(H_alpha))


@existence(
    "Theorem 5, second statement",
    Source.FOUND,
    status=Status.RECONSTRUCTED,
    sample=on_the_orbit,
    roundings=ROUNDINGS,
    assumptions=[
        SMOOTH,
        A_MINIMUM,
        assume("some unit is active on some sample", lambda live: live),
    ],
    controls=[
        Control(r"with balls of twice the layers' norms, so that $\alpha \ge 1/2$", balls=True),
        # All of the trace is then less than half of M, where the first block is what is left.
        Control(
            r"$\alpha$ longer by the root of twice the block's size", longer=(2 * _FIRST) ** 0.5
        ),
    ],
)
def theorem_5_sharpness(H, alpha, *, balls=False, longer=1.0):
    r"""$$\forall M\ \exists \alpha: \quad M \le \lambda_{\max} (\nabla^2 L(T_\alpha(\theta)))$$

    $M$ over twelve decades from the largest diagonal element $\delta$ on, $\alpha = (\delta /
    M)^{1/2}$; the Hessian on the orbit is that of theorem-5-hessian. The print requires layers that
    are not zero; that does not make $\delta$ positive, see theorem-5-dead-units.
    """
    delta = jnp.max(jnp.diag(H[:_FIRST, :_FIRST]))
    M = delta * alpha**2 * 1e6
    D = stretch(jnp.asarray(0.5) if balls else longer * jnp.sqrt(delta / M))
    matrix = D[:, None] * H * D[None, :]
    return Sides(M, top(matrix), jnp.linalg.norm(matrix))


def dead():
    """Layers that are not zero, positive attended values, labels 0: every unit is off."""
    return {"W1": -np.ones((2, 2)), "w2": np.ones(2), "v": np.ones((4, 2))}


@erratum(
    "Proof of Theorem 5, 'we assume a positive diagonal element'",
    Source.DERIVED,
    of=Kind.EXISTENCE,
    witness=dead,
    reason="dead units: a minimum whose orbit is flat throughout",
    corrected=Control("the signs of $w^{(1)}$ changed: units are on", sign=-1.0),
    roundings=ROUNDINGS,
)
def theorem_5_dead_units(W1, w2, v, *, sign=1.0):
    r"""$$w^{(i)} \ne 0 \Rightarrow \exists j: \quad 0 < \nabla^2_{w^{(1)} w^{(1)}} L(\theta)_{jj}$$

    Labels 0 and units that are off on all samples: a minimum with layers that are not zero where
    the risk is constant nearby. The proof assumes the element, the theorem does not. The data have
    other minima with active units, from which the sharp ones come.
    """
    # Diagonal of w1's block: means of (w2_i v_k 1[z_i > 0])^2.
    on = jnp.where(sign * v @ W1 > 0, 1.0, 0.0)
    slopes = w2[None, None, :] * v[:, :, None] * on[:, None, :]
    return 1e-9, jnp.max(jnp.mean(slopes**2, axis=0))


# Theorem 5 with softplus, by which section 2 replaces ReLU: the orbit changes the function.

_ALPHAS = (0.01, 0.5, 3.0, 100.0)
_SHARPNESS = 10.0
# A softplus, two sums of at most 4 terms.
_ROUNDINGS = 64


def layers(rng, count):
    """Layers and attended values; every fourth with a unit at its kink and one sign of w2."""
    W1, w2, v = (rng.standard_normal((count, *shape)) for shape in ((3, 4), (4,), (3,)))
    v[::4] = 0
    w2[::4] = np.abs(w2[::4])
    return {"W1": W1, "w2": w2, "v": v}


def size_of_terms(W1, w2, v, tau):
    """What is added up in an output."""
    return (jnp.abs(v) @ jnp.abs(W1) + math.log(2) / tau) @ jnp.abs(w2)


def sizes(W1, w2, v):
    """What is added up in the outputs along the orbit."""
    return jnp.stack([size_of_terms(W1, w2, v, _SHARPNESS * a) for a in _ALPHAS])


def along_the_orbit(W1, w2, v, sharpness):
    """Outputs at T_alpha(theta) for each alpha."""
    nets = [TwoLayer(*rescaled_layers(W1, w2, a), sharpness=sharpness) for a in _ALPHAS]
    return jnp.stack([net(v) for net in nets])


@identity(
    "Theorem 5 with softplus",
    sample=layers,
    status=Status.CORRECTED,
    count=32,
    roundings=_ROUNDINGS,
    controls=[Control(r"a sharpness over $\alpha$", inverse=True)],
)
def theorem_5_softplus_sharpness(W1, w2, v, *, inverse=False):
    r"""$$F_{\tau_0}(T_\alpha(\theta)) = F_{\alpha \tau_0}(\theta), \quad
    \phi_{\tau_0}(z) = \tau_0^{-1} \log(1 + e^{\tau_0 z})$$

    $T_\alpha$ changes the sharpness and nothing else. So with softplus the orbit is a path from
    $\tau_0$ to ReLU for $\alpha \to \infty$; for $\alpha \to 0$ it is linear in the attended
    values up to the constant $\log(2) \sum_i w^{(2)}_i / (\alpha \tau_0)$, which diverges unless
    the second layer sums to zero.
    """
    taus = [_SHARPNESS / a if inverse else _SHARPNESS * a for a in _ALPHAS]
    resharpened = jnp.stack([TwoLayer(W1, w2, sharpness=tau)(v) for tau in taus])
    return Sides(along_the_orbit(W1, w2, v, _SHARPNESS), resharpened, sizes(W1, w2, v))


@inequality(
    "Theorem 5 with softplus, what is left of it",
    sample=layers,
    status=Status.CORRECTED,
    count=32,
    roundings=_ROUNDINGS,
    search_over=("W1", "w2", "v"),
    controls=[Control("half of it", factor=0.5)],
)
def theorem_5_softplus_extent(W1, w2, v, *, factor=1.0):
    r"""$$| F_{\tau_0}(T_\alpha(\theta)) - F_{\mathrm{ReLU}}(\theta) | \le
    \frac{\log 2}{\alpha \tau_0} \|w^{(2)}\|_1$$

    Attained at an attended value 0. Once $\epsilon$ exceeds what $\tau_0$ makes of the risk, the
    half $\alpha \ge 1$ of the orbit stays in the flat set, and with it the infinite volume; for
    $\alpha \to 0$, where the Hessian diverges, it leaves the set unless $\sum_i w^{(2)}_i = 0$.
    """
    gap = jnp.abs(along_the_orbit(W1, w2, v, _SHARPNESS) - TwoLayer(W1, w2)(v))
    bound = math.log(2) * jnp.sum(jnp.abs(w2)) / (jnp.asarray(_ALPHAS) * _SHARPNESS)
    return Sides(gap, factor * bound, sizes(W1, w2, v))


def near_the_kink():
    """Four units on one attended value near 0, tau_0 = 10."""
    return {"W1": np.ones((3, 4)), "w2": np.ones(4), "v": np.full(3, 0.01)}


@erratum(
    "Theorem 5 with the activation of section 2",
    of=Kind.IDENTITY,
    witness=near_the_kink,
    reason="softplus is not positively homogeneous",
    corrected=Control("with ReLU", sharpness=None),
    roundings=_ROUNDINGS,
)
def theorem_5_softplus(W1, w2, v, *, sharpness=_SHARPNESS):
    r"""$$F_{\tau_0}(T_\alpha(\theta)) = F_{\tau_0}(\theta)$$

    $\tau_0 = 10$: at $\alpha = 0.01$ the output is 28 in place of 0.3. Minima of one risk need
    not be minima of the other: sharp ones come from $T_\alpha$ only where the output does not
    change, as for two units $u, -u$ with weights $c, -c$, whose output is $c \langle u, v \rangle$.
    """
    outputs = TwoLayer(W1, w2, sharpness=sharpness)(v)
    size = size_of_terms(W1, w2, v, _SHARPNESS * _ALPHAS[0])
    return Sides(along_the_orbit(W1, w2, v, sharpness), outputs, size)
