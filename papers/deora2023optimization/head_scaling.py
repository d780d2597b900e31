r"""Beyond the paper: why more heads hurt at a fixed step, and the steps that undo it.

The 1 / sqrt(H) of eq. (2) divides every motion of W_h. Scaled by
`deora2023optimization.library.optim.head_scaling`, training is the same for every number of heads.
Proof: papers/deora2023optimization/proofs/heads.md.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from attlas.losses.empirical_risk import empirical_risk
from attlas.losses.logistic import logistic_derivative
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.instances import (
    ROUNDINGS,
    grouped_heads,
    risk,
    risk_gradient,
    spread_tokens,
    token_bound,
)
from deora2023optimization.library.optim.head_scaling import head_scaled_descent, head_scaling

_COPIES, _STEPS = (1, 2, 4), 6


def distinct_heads(rng, count, groups=2, n=2, T=3, d=2):
    """Different heads with samples of random labels, and a step from a tenth to ten."""
    return {
        "X": spread_tokens(rng, count, n, T, d) * rng.uniform(1, 1.5, (count, 1, 1, 1)),
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "V": rng.normal(size=(count, groups, T, d)) * 10 ** rng.uniform(-1, 0.5, (count, 1, 1, 1)),
        "W": rng.normal(size=(count, groups, d, d)) * six_decades(rng, (count, 1, 1, 1), -1, 0.3),
        "eta": 10 ** rng.uniform(-1, 1, count),
    }


_slope = jax.value_and_grad(lambda model, X, y: empirical_risk(model, X, y))


def _risks(X, y, V, W, copies, start, step):
    """Risks of copies of the heads along descent; `step` gives the changes of a slope."""
    U, W = (jnp.repeat(a, copies, axis=0) for a in (start * V, W))

    def advance(model, _):
        loss, down = _slope(model, X, y)
        return jax.tree.map(jnp.add, model, step(down)), loss

    return jax.lax.scan(advance, MultiHead(U, W), length=_STEPS)[1]


@identity(
    "beyond the paper: the same training for every number of heads",
    sample=distinct_heads,
    status=Status.NEW,
    alike=True,
    count=32,
    # Six steps of up to ten lengthen the rounding of a risk by their products.
    roundings=2**6 * ROUNDINGS * _STEPS,
    controls=[
        Control("a fixed step", rule="fixed"),
        Control(r"$\sqrt H\eta$ for both", rule="root"),
        Control("the decoders' start not scaled", rule="start"),
    ],
)
def head_scaling_is_exact(X, y, V, W, eta, *, rule="scaled"):
    r"""$$U_h^{(0)}=\frac{V_h}{\sqrt H},\quad \eta_U=\eta,\quad \eta_W=H\eta
    \quad\Rightarrow\quad \widehat L(\theta^{(k)})\text{ is the same for all }H=mG$$

    Two different heads, one, two and four copies of each: the risks of six iterates agree. With
    $V_h=\sqrt H\,U_h$ the output is $\frac1H\sum_h\langle V_h,\cdot\rangle$, and no $H$ remains.
    """
    risks = []
    for m in _COPIES:
        H = m * V.shape[0]
        descent, scaling = partial(_scaled, H=H, eta=eta), head_scaling(1.0, H)
        if rule in ("fixed", "root"):
            step = eta * (H**0.5 if rule == "root" else 1)
            descent = partial(jax.tree.map, lambda slope, step=step: -step * slope)
        start = 1.0 if rule == "start" else scaling.start
        risks.append(_risks(X, y, V, W, m, start, descent))
    size = 1 + jnp.sum(jnp.abs(V)) * jnp.max(jnp.abs(X)) * (1 + eta)
    return Sides(jnp.stack([risks[0]] * 2), jnp.stack(risks[1:]), magnitude=size)


def _scaled(slope, H, eta):
    """The change by the library's rule; a traced eta scales the change of a unit step."""
    descent = head_scaled_descent(1.0, H)
    change, _ = descent.update(slope, descent.init(slope))
    return jax.tree.map(lambda leaf: eta * leaf, change)


def grown_heads(rng, count):
    """Heads of which there are one to thousands of copies; the motion of opposite unit tokens."""
    batch = distinct_heads(rng, count, T=2)
    batch["X"][::2, :, 1] = -batch["X"][::2, :, 0]
    copies = np.floor(10 ** rng.uniform(0, 4, count))
    return {**batch, "copies": copies}


@inequality(
    "beyond the paper: at a fixed step attention freezes",
    sample=grown_heads,
    search_over=("V", "W"),
    status=Status.NEW,
    alike=True,
    roundings=ROUNDINGS * _STEPS,
    controls=[
        Control(r"$H^{-1}$ in place of $H^{-1/2}$", power=1.0),
        Control(r"without $\sqrt T$, a third of it", part=1 / 3),
    ],
)
def attention_freezes(X, y, V, W, eta, copies, *, power=0.5, part=1.0):
    r"""$$\|W_h^{(K)}-W_h^{(0)}\|_F\le\frac\eta{\sqrt H}\sqrt T\,R^3
    \sum_{k<K}\|U_h^{(k)}\|_F\,\frac1n\sum_i|\ell'_i|$$

    With $\eta$ fixed no head turns as $H\to\infty$: the sum is bounded by the slopes, at most
    $K$ times the decoder. So attention stays that of the start, uniform after the first phase, and
    the model becomes a linear one: this is why the test loss grows with the number of heads.
    """
    groups, H = V.shape[0], copies * V.shape[0]
    start = W

    # All H heads by groups: the model of the groups alone has 1 / sqrt(groups).
    def outputs(model, x):
        return jnp.sqrt(copies) * model(x)

    def risk(model):
        return jnp.mean(jnp.logaddexp(0.0, -y * jax.vmap(lambda x: outputs(model, x))(X)))

    def advance(state, _):
        U, W, total = state
        model = MultiHead(U, W)
        down = jax.grad(risk)(model)
        margins = y * jax.vmap(lambda x: outputs(model, x))(X)
        slopes = jnp.mean(-logistic_derivative(margins))
        total = total + slopes * jnp.sqrt(jnp.sum(U**2, axis=(1, 2)))
        # A gradient of a group is that of its copies together.
        U, W = U - eta * down.U / copies, W - eta * down.W / copies
        return (U, W, total), (jnp.sqrt(jnp.sum((W - start) ** 2, axis=(1, 2))), total)

    first = V, W, jnp.zeros(groups)
    turned, total = jax.lax.scan(advance, first, length=_STEPS)[1]
    scale = part * jnp.sqrt(jnp.asarray(X.shape[1], total.dtype)) * token_bound(X) ** 3
    bound = eta / H**power * scale * total
    return Sides(turned, bound, magnitude=jnp.maximum(bound, jnp.max(jnp.abs(start))))


# Groups of equal heads stand for all heads: training with m copies, written out and grouped.
#
# Not a statement of the paper but what its claims at many heads rest on here: H = 6 heads, three
# copies of two, trained as six heads and as two groups.

_EQUAL, _EQUAL_STEPS, _ETA = 3, 3, 0.1


def _all_heads(X, y, U, W):
    """Risks of six heads along gradient descent by automatic differentiation."""
    model = MultiHead(jnp.repeat(U, _EQUAL, axis=0), jnp.repeat(W, _EQUAL, axis=0))
    slope = jax.value_and_grad(lambda m: empirical_risk(m, X, y))
    risks = []
    for _ in range(_EQUAL_STEPS):
        loss, down = slope(model)
        risks.append(loss)
        model = jax.tree.map(lambda p, g: p - _ETA * g, model, down)
    return jnp.stack(risks)


@identity(
    "Eq. (2), heads in groups of equal copies",
    sample=partial(grouped_heads, copies=(float(_EQUAL), float(_EQUAL))),
    controls=[Control("a step by the gradient of the whole group", shared=True)],
    status=Status.NEW,
    alike=True,
    count=32,
    roundings=ROUNDINGS * _EQUAL_STEPS,
)
def equal_heads(X, y, U, W, copies, *, shared=False):
    r"""$$\theta_{h}^{(0)} = \theta_{h'}^{(0)} \;\Rightarrow\; \theta_h^{(k)} = \theta_{h'}^{(k)},
    \quad \tilde\Phi = \sqrt{\frac{m}{G}} \sum_{g \le G} \Phi(X;\theta_g),\quad H = Gm$$

    Six heads against two groups of three: the risks of three iterates agree to rounding.
    """
    data = {"X": X, "y": y, "copies": copies}
    # False: the gradient of the group in place of that of one copy, m times as long.
    step = _ETA * (copies if shared else 1)
    # A risk carries the rounding of its outputs, which are larger than itself at large decoders.
    size = 1 + jnp.sum(jnp.abs(U)) * jnp.max(jnp.abs(X)) * _EQUAL
    written_out, risks = _all_heads(X, y, U, W), []
    for _ in range(_EQUAL_STEPS):
        risks.append(risk(data, U, W))
        slope = risk_gradient(data, U, W)
        U, W = U - step * slope[0], W - step * slope[1]
    return Sides(written_out, jnp.stack(risks), magnitude=size)
