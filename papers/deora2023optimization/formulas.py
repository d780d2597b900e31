r"""The library's formulas against the paper's text, written out again, at drawn numbers.

What a claim on models leaves untested (constants that its instances do not reach) is held here:
left the library, right the formula as the paper prints it. Symbols as in the paper; D =
||theta - theta_0||, x = ||theta||_{2,inf} of the target, X = 3 D + x.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_regret,
    deora2023_stability,
    deora2023_stability_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
    deora2023_quasi_convexity,
)
from attlas.bounds.optimisation.deora2023_model import (
    deora2023_gradient,
    deora2023_hessian,
    deora2023_multi_head_gradient,
    deora2023_multi_head_hessian,
)
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_head_norm_bound,
    deora2023_iterate_distance,
    deora2023_rho,
    deora2023_step_limits,
    deora2023_training_loss,
)
from attlas.claims.claim import Control, Sides, Source
from attlas.claims.statement import identity
from deora2023optimization.library.bounds import deora2023_initialisation as good
from deora2023optimization.library.bounds import deora2023_mixture as dm1

_WHOLE = ("T", "d", "H", "K", "n", "M", "n_1")
_SHARES = ("zeta", "delta", "eps")


def numbers(rng, count):
    """Every number of the paper: sizes up to 30, shares in (0, 1), the others from .2 to 5."""
    names = ("R", "D", "x", "eta", "L", "L_0", "B_2", "B_Phi", "gamma", "G", "S", "Z", "P", "C")
    batch = {name: np.exp(rng.uniform(-1.6, 1.6, count)) for name in (*names, "Z_mu", "Z_nu")}
    batch |= {name: rng.integers(1, 31, count).astype(float) for name in _WHOLE}
    return {**batch, **{name: rng.uniform(0.05, 0.45, count) for name in _SHARES}}


written_out = partial(
    identity,
    source=Source.FOUND,
    sample=numbers,
    controls=[Control("the formula and one percent", share=1.01)],
    count=32,
)


def rounded_up(number, found):
    """The ceiling; where rounding decides between two integers, the one that was found."""
    return jnp.clip(found, jnp.ceil(number * (1 - 1e-12)), jnp.ceil(number * (1 + 1e-12)))


def tokens_and_decoders(rng, count):
    """Two heads on five tokens of dimension three, decoders small and large."""
    U = rng.normal(size=(count, 2, 5, 3)) * 10 ** rng.uniform(-3, 1, (count, 2, 1, 1))
    return {"X": rng.normal(size=(count, 5, 3)), "U": U}


@written_out("Proposition 1 and Appendix A.1, formulas", sample=tokens_and_decoders)
def formula_proposition_1(X, U, *, share=1.0):
    r"""$$\|\nabla\Phi\| \le 2 \|X\|_{2,\infty}^2 s + \sqrt T \|X\|_{2,\infty},\quad
    \|\nabla^2\Phi\| \le 6 d \|X\|_{2,\infty}^2 \|X\|_{1,\infty}^2 s + 2 \sqrt{Td}
    \|X\|_{2,\infty}^2 \|X\|_{1,\infty},\quad s = \sum_t \|X u_t\|_\infty$$

    And for $H$ heads the largest of one head's bounds, over $\sqrt H$ for the Hessian.
    """
    (T, d), H = X.shape, len(U)
    R, largest = jnp.max(jnp.linalg.norm(X, axis=1)), jnp.max(jnp.abs(X))
    s = jnp.sum(jnp.max(jnp.abs(jnp.einsum("htj,sj->hts", U, X)), axis=2), axis=1)
    gradient = 2 * R**2 * s + T**0.5 * R
    hessian = 6 * d * R**2 * largest**2 * s + 2 * (T * d) ** 0.5 * R**2 * largest
    right = [gradient[0], hessian[0], jnp.max(gradient), jnp.max(hessian) / H**0.5]
    left = [deora2023_gradient(X, U[0], "printed"), deora2023_hessian(X, U[0], "printed")]
    left.append(deora2023_multi_head_gradient(X, U, "printed"))
    left.append(deora2023_multi_head_hessian(X, U, "printed"))
    return jnp.stack(left), share * jnp.stack(right)


@written_out("Corollary 1 and Proposition 4, formulas")
def formula_corollary_1(T, d, R, x, H, *, share=1.0):
    r"""$$\beta_1 = \sqrt T R (2R^2 x + 1),\ \beta_2 = \tfrac{\beta_3}{\sqrt H} +
    \tfrac{\beta_1^2}{4},\ \beta_3 = 2\sqrt{Td} R^3 (3\sqrt d R^2 x + 1);\quad \tfrac43$$

    4/3 is the factor of Proposition 4, at $2 \beta_3 \|\theta_1-\theta_2\|^2 = \sqrt H$.
    """
    beta_1 = jnp.sqrt(T) * R * (2 * R**2 * x + 1)
    beta_3 = 2 * jnp.sqrt(T * d) * R**3 * (3 * jnp.sqrt(d) * R**2 * x + 1)
    right = [beta_1, beta_3 / jnp.sqrt(H) + beta_1**2 / 4, beta_3, jnp.asarray(4 / 3)]
    left = [deora2023_beta_1(T, R, x, "printed"), deora2023_beta_2(T, d, R, x, H, "printed")]
    left.append(deora2023_beta_3(T, d, R, x, "printed"))
    left.append(deora2023_quasi_convexity(0.5, "printed"))
    return jnp.stack(left), share * jnp.stack(right)


@written_out("Theorem 1 and section 6.1, formulas")
def formula_theorem_1(T, d, R, D, x, H, K, eta, L, L_0, *, share=1.0):
    r"""$$\sqrt H \ge 2 \tilde\beta_3 (3D)^2,\quad \rho = \Big(\tfrac{2\sqrt{Td}R^3}{\sqrt H} +
    \tfrac{TR^2}{4}\Big) \alpha^2,\ \alpha = 3\sqrt d R^2 [3\sqrt T R^3 (3D + x) + 2\sqrt T R],
    \quad \eta \le 1 \wedge \tfrac1\rho \wedge \tfrac{D^2}{KL} \wedge \tfrac{D^2}{L_0},\quad
    2L + \tfrac{5D^2}{4\eta K},\quad 4D,\ 3D$$

    The number of heads is what section 6.1 asks of all iterates: Proposition 4's condition at
    distance $3D$, with $\beta_3$ at $3D + x$.
    """
    setting, X, root = Setting(T, d, R, D, x), 3 * D + x, jnp.sqrt(T)
    beta_3 = 2 * jnp.sqrt(T * d) * R**3 * (3 * jnp.sqrt(d) * R**2 * X + 1)
    alpha = 3 * jnp.sqrt(d) * R**2 * (3 * root * R**3 * X + 2 * root * R)
    rho = (2 * jnp.sqrt(T * d) * R**3 / jnp.sqrt(H) + T * R**2 / 4) * alpha**2
    heads = (2 * beta_3 * (3 * D) ** 2) ** 2
    limits = [jnp.ones_like(D), 1 / rho, D**2 / (K * L), D**2 / L_0]
    right = [X, heads, rho, *limits, 2 * L + 5 * D**2 / (4 * eta * K), 4 * D, 3 * D]
    left = [deora2023_head_norm_bound(D, x, "printed")]
    left.append(deora2023_head_condition(setting, "printed"))
    left += [found := deora2023_rho(setting, H, "printed")]
    left += deora2023_step_limits(found, D, K, L, L_0).values()
    left.append(deora2023_training_loss(L, D, eta, K, "printed"))
    left += deora2023_iterate_distance(D, "printed")
    right[1] = rounded_up(right[1], left[1])
    return jnp.stack(left), share * jnp.stack(right)


@written_out("Theorem 2, Lemma 3 and section 6.2, formulas")
def formula_theorem_2(T, d, R, D, x, K, eta, L, n, G, *, share=1.0):
    r"""$$\sqrt H \ge 2 \tilde\beta_3 (6D)^2,\quad B = 2KL + \tfrac{9D^2}{4\eta},\quad
    \tfrac1n \sum_i \|\theta_K - \theta_K^{\neg i}\| \le \tfrac{2\eta\tilde\beta_1}{n} B,\quad
    2G\,E[\cdot],\quad \tfrac4n B$$

    Trajectories are at most $6D$ apart. $G$ stands for $\tilde\beta_1$, and in $2G\,E[\cdot]$ for
    the Lipschitz constant; the stability there is $L$.
    """
    beta_3 = 2 * jnp.sqrt(T * d) * R**3 * (3 * jnp.sqrt(d) * R**2 * (3 * D + x) + 1)
    heads = (2 * beta_3 * (6 * D) ** 2) ** 2
    regret = 2 * K * L + 9 * D**2 / (4 * eta)
    right = [heads, regret, 2 * eta * G / n * regret, 2 * G * L, 4 / n * regret]
    left = [deora2023_stability_heads(Setting(T, d, R, D, x), "printed")]
    left.append(deora2023_regret(L, D, eta, K, "printed"))
    left.append(deora2023_stability(n, G, L, D, eta, K, "printed"))
    left.append(deora2023_stability_gap(G, L))
    left.append(deora2023_generalisation_gap(n, L, D, eta, K, constants="printed"))
    right[0] = rounded_up(right[0], left[0])
    return jnp.stack(left), share * jnp.stack(right)


@written_out("Proposition 7 and Corollary 2, formulas")
def formula_corollary_2(T, d, R, B_2, B_Phi, gamma, H, K, eta, n, eps, *, share=1.0):
    r"""$$g_0(\epsilon) = \tfrac{2B_\Phi + \log(1/\epsilon)}{\gamma},\quad \sqrt H \ge
    \tfrac{g_0^2 \beta_3}{2 B_\Phi} \vee 18 \tilde\beta_3 g_0^2,\quad \eta \le 1 \wedge
    \tfrac1\rho \wedge \tfrac{4B_\Phi^2}{\gamma^2 \log(1+e^{B_\Phi})},\quad
    \tfrac2K + \tfrac{5 g_0^2}{4\eta K},\quad \tfrac{17 g_0^2}{\eta n}$$

    At $\epsilon = 1/K$, with a direction of norm 1, and a target whose head is at most
    $B_2 + g_0$; the risk at the target by Taylor's bound is the last of these.
    """
    start = good.Start(T, d, R, B_2, B_Phi, gamma)
    g = (2 * B_Phi + jnp.log(K)) / gamma
    near, far = (6 * jnp.sqrt(T) * d * R**5 * (g * k + B_2 + g) for k in (0, 3))
    near, far = near + 2 * jnp.sqrt(T * d) * R**3, far + 2 * jnp.sqrt(T * d) * R**3
    target = (g**2 * near / (2 * B_Phi)) ** 2
    heads = jnp.maximum(target, (18 * far * g**2) ** 2)
    rho = deora2023_rho(Setting(T, d, R, g, B_2 + g), H, "printed")
    first = 4 * B_Phi**2 / (gamma**2 * jnp.log(1 + jnp.exp(B_Phi)))
    step = jnp.minimum(jnp.minimum(1, 1 / rho), first)
    far = (2 * B_Phi + jnp.log(1 / eps)) / gamma
    fall = -B_Phi + far * gamma - far**2 / 2 * R / jnp.sqrt(H)
    right = [far, target, heads, step, 2 / K + 5 * g**2 / (4 * eta * K), 17 * g**2 / (eta * n)]
    right.append(jnp.logaddexp(0.0, -fall))
    left = [good.deora2023_target_distance(B_Phi, gamma, eps, 1.0)]
    left.append(good.deora2023_target_heads(start, 1 / K, "printed", 1.0))
    left.append(good.deora2023_corollary_2_heads(start, K, "printed", 1.0))
    left.append(good.deora2023_corollary_2_step(start, K, H, "printed", 1.0))
    left.append(good.deora2023_corollary_2_training(B_Phi, gamma, eta, K))
    left.append(good.deora2023_corollary_2_gap(B_Phi, gamma, eta, K, n, constants="printed"))
    left.append(good.deora2023_target_loss(B_Phi, gamma, eps, R, H, 1.0))
    right[1:3] = [rounded_up(right[k], left[k]) for k in (1, 2)]
    return jnp.stack(left), share * jnp.stack(right)


def equation_7(T, S, zeta, M, Z_mu, Z_nu, error):
    """(7) with this term of the error p, its last term, and the size of what is added up."""
    bar = jnp.maximum(Z_mu, Z_nu)
    noise = 7 * bar * S**2 + 12 * bar**2 + 16 * bar**3 / S**2
    scale = T * (1 - zeta) * zeta / (4 * jnp.sqrt(2 * (M + 1)))
    linear = S * jnp.sqrt(T) * (zeta - 2 * (1 - zeta) * Z_mu / S**2) / jnp.sqrt(2.0)
    size = scale * (zeta * S**4 + noise) + error + S * jnp.sqrt(T) * (1 + 2 * Z_mu / S**2)
    return scale * (zeta * S**4 - noise) - error + linear, linear, size


@written_out("Assumption 3, Lemma 2 and Proposition 2, formulas")
def formula_proposition_2(
    T, d, S, Z, Z_mu, Z_nu, M, zeta, P, n, n_1, delta, C, R, gamma, *, share=1.0
):
    r"""$$R = \sqrt{S^2 + Z^2 + 2Z_\nu/M},\quad (6),\quad \sqrt T (S+P),\quad
    T R (S+P) \sqrt{2\log(n/\delta)},\quad (7),\quad \sqrt H \ge C\, \tfrac{R^4 T (S+P)}
    {\gamma_\star} \sqrt{2\log(n/\delta)}$$

    $\zeta/2$ of Lemma 2 as printed as well.
    """
    tail, of = jnp.sqrt(2 * jnp.log(n / delta)), (T, S, zeta, M, Z_mu, Z_nu)
    star, linear, size = equation_7(*of, P * T**2.5 * (S + Z) ** 3)
    error = C * (2 * S + Z) * (jnp.sqrt(d / n_1) + jnp.sqrt(jnp.log(1 / delta) / n_1))
    heads = (C * R**4 * T * (S + P) / gamma * tail) ** 2
    right = [jnp.sqrt(S**2 + Z**2 + 2 * Z_nu / M), zeta / 2, error, jnp.sqrt(T) * (S + P)]
    right += [T * R * (S + P) * tail, star, linear, jnp.maximum(heads, 1)]
    left = [dm1.deora2023_token_radius(S, Z, Z_nu, M)]
    left.append(dm1.deora2023_first_step_slope(zeta, "printed"))
    left.append(dm1.deora2023_first_step_error(S, Z, d, n_1, delta, C))
    left.append(dm1.deora2023_decoder_bound(T, S, P, zeta, "printed"))
    left.append(dm1.deora2023_output_bound(T, R, S, P, zeta, n, delta, "printed"))
    left.append(dm1.deora2023_gamma_star(*of, Z, P, "printed"))
    left.append(dm1.deora2023_gamma_linear(T, S, zeta, Z_mu))
    left.append(dm1.deora2023_separability_heads(T, R, S, P, gamma, n, delta, C))
    right[7] = rounded_up(right[7], left[7])
    right = jnp.stack(right)
    return Sides(jnp.stack(left), share * right, right.at[5:7].set(size))


@written_out("Proposition 3 and section 7, formulas")
def formula_proposition_3(T, S, zeta, M, eps, Z_mu, *, share=1.0):
    r"""$$\Gamma_\epsilon = \tfrac{8\sqrt{2(M+1)}}{3S^2} \log \tfrac{\zeta^{-1} - 1}{\epsilon},\quad
    \gamma_{attn} = \tfrac{\sqrt T}{\sqrt2 S} (S^2(1-\epsilon) - 2\epsilon Z_\mu),\quad
    \tfrac{S\sqrt T}{\sqrt2} ((1-\epsilon) - 2\epsilon Z_\mu/S)$$

    The last is section 7's, see section-7-margin.
    """
    scale = 8 * jnp.sqrt(2 * (M + 1)) / (3 * S**2) * jnp.log((1 / zeta - 1) / eps)
    margin = jnp.sqrt(T) / (jnp.sqrt(2.0) * S) * (S**2 * (1 - eps) - 2 * eps * Z_mu)
    restated = S * jnp.sqrt(T) / jnp.sqrt(2.0) * ((1 - eps) - 2 * eps * Z_mu / S)
    left = [dm1.deora2023_saturation(S, zeta, M, eps, constants="printed")]
    left.append(dm1.deora2023_gamma_attention(T, S, eps, Z_mu))
    left.append(dm1.deora2023_gamma_attention(T, S, eps, Z_mu, "printed"))
    size = jnp.sqrt(T) * (S + Z_mu * (1 + 1 / S))
    return Sides(jnp.stack(left), share * jnp.stack([scale, margin, restated]), scale + size)
