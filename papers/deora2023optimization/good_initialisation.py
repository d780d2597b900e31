r"""Definition 1 (good initialisation), Proposition 7 and Assumption 2.

P3 has a direction theta_star of norm sqrt(2) with margin gamma in the tangent features;
c = (2 B_Phi + log(1/epsilon)) / gamma, and the target is theta_0 + c theta_star.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_3
from attlas.claims.claim import Control, ProofStep, Sides
from attlas.claims.statement import inequality
from deora2023optimization.good_instances import (
    B_PHI,
    GOOD,
    good_initialisations,
    largest_start,
    target_of,
)
from deora2023optimization.instances import (
    ROUNDINGS,
    largest_head,
    margins,
    risk,
    squared_distance,
)
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_target_distance,
    deora2023_target_heads,
    deora2023_target_scale,
)

_CHAIN = "Corollary 2"

on_good_starts = partial(
    inequality,
    sample=good_initialisations,
    not_attacked="a margin is certified for every instance, too slow to repeat for each move",
    assumptions=GOOD,
    controls=[Control("labels shuffled", shuffled=True)],
    roundings=ROUNDINGS,
    count=48,
)


def _labels(y, shuffled):
    """The labels, or those of other samples: two of three change."""
    return jnp.roll(y, 1) if shuffled else y


@on_good_starts("Definition 1, P3")
def definition_1_p3(X, y, U, W, star_U, star_W, margin, margin_above, *, shuffled=False):
    r"""$$\gamma \le \min_i y_i \langle \nabla\tilde\Phi(X_i;\theta_0), \theta_\star\rangle,\quad
    \|\theta_\star\| = \sqrt 2$$

    $\gamma$ is the certified margin of the SVM on the tangent kernel, the right side a
    directional derivative of the model. Starts: zero, one step from zero, Gaussian heads in
    opposite pairs. P1 and P2 hold with $B_2 = \max(1, \text{largest head})$ and $B_\Phi = 1$.
    """
    data = {"X": X, "y": _labels(y, shuffled), "copies": jnp.ones(())}
    _, slopes = jax.jvp(lambda U, W: margins(data, U, W), (U, W), (star_U, star_W))
    return Sides(margin, jnp.min(slopes), error=margin_above - margin)


def _with_heads(start, shuffled):
    """As many heads as Proposition 7 requires, and the target."""
    T, d = start["X"].shape[-2:]
    at = Start(T, d, start["R"], largest_start(start), B_PHI, start["margin"])
    needed = deora2023_target_heads(at, start["epsilon"], "printed")
    copies = jnp.ceil(needed / len(start["U"]))
    run = {**start, "y": _labels(start["y"], shuffled), "copies": copies}
    return run, target_of(start, start["epsilon"], copies)


@on_good_starts("Proposition 7, proof", proof_step=ProofStep(_CHAIN, 1))
def proposition_7_margin(*, shuffled=False, **start):
    r"""$$\min_i y_i \tilde\Phi(X_i;\theta_{(\epsilon)}) \ge -B_\Phi + c\gamma -
    \frac{c^2\|\theta_\star\|^2}{2} \frac{\beta_3}{\sqrt H},\quad
    c = \frac{2B_\Phi + \log(1/\epsilon)}{\gamma}$$

    With the outputs at the start themselves in place of $B_\Phi$, and $\beta_3$ on the segment.
    """
    U, W, gamma = start["U"], start["W"], start["margin"]
    run, target = _with_heads(start, shuffled)
    (T, d), H = start["X"].shape[-2:], len(U) * run["copies"]
    x = jnp.maximum(largest_head(*target), largest_head(U, W))
    c = deora2023_target_scale(B_PHI, gamma, start["epsilon"])
    lost = c**2 * deora2023_beta_3(T, d, start["R"], x, "printed") / jnp.sqrt(H)
    left = c * gamma - jnp.max(jnp.abs(margins(run, U, W))) - lost
    return Sides(left, jnp.min(margins(run, *target)), magnitude=c * gamma + B_PHI)


@on_good_starts(
    "Proposition 7; Assumption 2 under Definition 1",
    controls=[Control("labels shuffled", shuffled=True), Control("a 50th of each", share=0.02)],
    proof_step=ProofStep(_CHAIN, 2),
)
def proposition_7(*, shuffled=False, share=1.0, **start):
    r"""$$\sqrt H \ge \frac{c^2\beta_3(B_2 + \sqrt 2 c)}{B_\Phi} \;\Rightarrow\;
    \widehat{L}(\theta_{(\epsilon)}) \le \epsilon,\quad
    \|\theta_{(\epsilon)} - \theta_0\| \le g_0(\epsilon) = \sqrt 2 c,\quad
    \|\theta_{(\epsilon)}\|_{2,\infty} \le g(\epsilon) = B_2 + \sqrt 2 c$$

    The number of heads is the smallest that the condition allows. The distance is exactly
    $\sqrt 2 c$, as P3 has norm $\sqrt 2$: Corollary 2 takes $g_0 = c$. Both functions fall with
    $\epsilon$, as Assumption 2 asks. The risk is at most $.135 = \exp(-2 B_\Phi)$ times
    $\epsilon$: twice $B_\Phi$ is given away where the outputs at the start are zero.
    """
    run, target = _with_heads(start, shuffled)
    copies, U, W, epsilon = (run[name] for name in ("copies", "U", "W", "epsilon"))
    moved = jnp.sqrt(squared_distance(copies, target[0] - U, target[1] - W))
    g_0 = deora2023_target_distance(B_PHI, start["margin"], epsilon)
    measured = jnp.stack([risk(run, *target), moved, largest_head(*target)])
    bounds = jnp.stack([epsilon, g_0, largest_start(start) + g_0])
    # The target is far in the sum over all heads and near in each: the difference cancels.
    far = jnp.sqrt(squared_distance(copies, U, W)) + g_0
    return Sides(measured, share * bounds, magnitude=jnp.stack([jnp.ones(()), far, bounds[2]]))
