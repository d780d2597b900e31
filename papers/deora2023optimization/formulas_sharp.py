r"""Our own formulas beside the paper's, against docs/proofs/deora2023_*.md, at drawn numbers."""

from functools import partial

import jax.numpy as jnp

from attlas.bounds.generalisation import deora2023_generalisation as stable
from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_3,
    deora2023_quasi_convexity,
)
from attlas.bounds.optimisation.deora2023_model import (
    deora2023_effective_tokens,
    deora2023_gradient,
    deora2023_hessian,
)
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
    deora2023_training_loss,
)
from attlas.claims.claim import Sides, Source, Status
from attlas.models.attention.multi_head import Decoder
from deora2023optimization.formulas import equation_7, rounded_up, tokens_and_decoders, written_out
from deora2023optimization.library.bounds import deora2023_exponential as growing
from deora2023optimization.library.bounds import deora2023_mixture as dm1
from deora2023optimization.library.bounds.deora2023_initialisation import deora2023_corollary_2_gap

derived = partial(written_out, source=Source.DERIVED, status=Status.SHARPENED)


@derived("Proposition 1, sharpened formulas", sample=tokens_and_decoders)
def formula_proposition_1_sharp(X, U, *, share=1.0):
    r"""$$\sqrt T R \max(1, R (\textstyle\sum_t s_t^2)^{1/2}),\quad 2R^4 \sum_t s_t +
    \sqrt T R^3,\quad \tfrac12 (c + \sqrt{c^2 + 4TR^6}),\ c = \tfrac{4}{3\sqrt3} R^4 \sum_t s_t,
    \quad s_t = \|X u_t\|_\infty$$

    And the number that stands for $T$: $T^2$ for a pooled decoder, 1 for the last token.
    """
    T, R, U = len(X), jnp.max(jnp.linalg.norm(X, axis=1)), U[0]
    s = jnp.max(jnp.abs(U @ X.T), axis=1)
    c = 4 / (3 * 3**0.5) * R**4 * jnp.sum(s)
    right = [T**0.5 * R * jnp.maximum(1, R * jnp.linalg.norm(s)), 2 * R**4 * jnp.sum(s)]
    right[1] += T**0.5 * R**3
    right += [(c + jnp.sqrt(c**2 + 4 * T * R**6)) / 2, *jnp.array([T * T, 1.0])]
    left = [deora2023_gradient(X, U, "sharp"), deora2023_hessian(X, U, "dimension_free")]
    tokens = [deora2023_effective_tokens(T, kind) for kind in (Decoder.POOLED, Decoder.LAST)]
    left += [deora2023_hessian(X, U, "sharp"), *jnp.asarray(tokens, float)]
    return jnp.stack(left), share * jnp.stack(right)


@derived("Theorem 1, sharpened formulas")
def formula_theorem_1_sharp(T, d, R, D, x, H, K, eta, L, *, share=1.0):
    r"""$$w^2 = \tfrac9{10},\ a = \tfrac w{\sin w},\ b = \tfrac w{\tan w},\ r^2 = 3 + 2a - 2b:
    \quad \sqrt H \ge \tfrac{r^2}{w^2} \beta_3 D^2,\quad \rho = \beta_2,\quad
    \tfrac{L}{\cos w} + \tfrac{(3-2b) D^2}{2b\,\eta K}$$

    With $\beta_1 = \sqrt T R \max(1, R^2 X)$, $\beta_3 = \sqrt T R^3 (s + \sqrt{s^2+4})/2$,
    $s = 4 R^2 X / (3\sqrt3)$ at $X = rD + x$; then the exponential form at $q = 2$,
    $\sqrt H \ge \frac{5}{2 \log 2} \beta_3(\sqrt5 D + x) D^2$ and $2L + D^2/(2\eta K)$, the
    dimension-free $\beta_3$, and $1/\cos(\sqrt c/2)$ of Proposition 4 at $c = 1/2$.
    """
    w = 0.9**0.5
    a, b = w / jnp.sin(w), w / jnp.tan(w)
    r = jnp.sqrt(3 + 2 * a - 2 * b)

    def beta_3(X):
        s = 4 * R**2 * X / (3 * 3**0.5)
        return jnp.sqrt(T) * R**3 * (s + jnp.sqrt(s**2 + 4)) / 2

    X = r * D + x
    beta_1 = jnp.sqrt(T) * R * jnp.maximum(1, R**2 * X)
    root = 5 / (2 * jnp.log(2.0)) * beta_3(5**0.5 * D + x) * D**2
    right = [(r**2 / w**2 * beta_3(X) * D**2) ** 2, beta_1]
    right += [beta_3(X) / jnp.sqrt(H) + beta_1**2 / 4, root, 2 * L + D**2 / (2 * eta * K)]
    right += [L / jnp.cos(w) + (3 - 2 * b) * D**2 / (2 * b * eta * K)]
    right += [jnp.sqrt(T) * R**3 * (2 * R**2 * x + 1), 1 / jnp.cos(jnp.asarray(8.0) ** -0.5)]
    setting = Setting(T, d, R, D, x)
    left = [deora2023_head_condition(setting), deora2023_beta_1(T, R, X)]
    left += [deora2023_rho(setting, H), growing.deora2023_exponential_root(setting)]
    left.append(growing.deora2023_exponential_loss(L, D, eta, K))
    left.append(deora2023_training_loss(L, D, eta, K))
    left += [deora2023_beta_3(T, d, R, x, "dimension_free"), deora2023_quasi_convexity(0.5)]
    right[0] = rounded_up(right[0], left[0])
    return jnp.stack(left), share * jnp.stack(right)


@derived("Theorem 2 and Corollary 2, sharpened formulas")
def formula_theorem_2_sharp(T, d, R, D, x, K, eta, L, n, G, B_Phi, gamma, *, share=1.0):
    r"""$$w^2 = \tfrac3{10}:\quad \sqrt H \ge \tfrac{r^2}{w^2} \beta_3 D^2,\quad A =
    \tfrac{w^2}{r^2} \tfrac{2}{\cos w} \Big(\tfrac1{\cos w} + \tfrac{3-2b}{2b} + 1\Big),\quad
    B = \tfrac{KL}{\cos w} + \Big(\tfrac{3-2b}{2b} + 1\Big) \tfrac{D^2}\eta,\quad
    \tfrac{e^A \eta\beta_1}{n} B,\quad \tfrac{2 e^A s}{n} B$$

    $r$ and $b$ as in formula-theorem-1-sharp; $G$ stands for $\beta_1$, $s$ is $R$. Then
    $\frac4n (2 + \frac{9 g_0^2}{4\eta})$ of Corollary 2.
    """
    w = 0.3**0.5
    b = w / jnp.tan(w)
    r = jnp.sqrt(3 + 2 * w / jnp.sin(w) - 2 * b)
    third = 4 * R**2 * (r * D + x) / (3 * 3**0.5)
    beta_3 = jnp.sqrt(T) * R**3 * (third + jnp.sqrt(third**2 + 4)) / 2
    path = (3 - 2 * b) / (2 * b) + 1
    grown = jnp.exp(w**2 / r**2 * 2 / jnp.cos(w) * (1 / jnp.cos(w) + path))
    regret = K * L / jnp.cos(w) + path * D**2 / eta
    g = (2 * B_Phi + jnp.log(K)) / gamma
    right = [(r**2 / w**2 * beta_3 * D**2) ** 2, regret, grown * eta * G / n * regret]
    right += [2 * grown * R / n * regret, 4 / n * (2 + 9 * g**2 / (4 * eta))]
    left = [stable.deora2023_stability_heads(Setting(T, d, R, D, x))]
    left.append(stable.deora2023_regret(L, D, eta, K))
    left.append(stable.deora2023_stability(n, G, L, D, eta, K))
    left.append(stable.deora2023_generalisation_gap(n, L, D, eta, K, R))
    left.append(deora2023_corollary_2_gap(B_Phi, gamma, eta, K, n))
    right[0] = rounded_up(right[0], left[0])
    return jnp.stack(left), share * jnp.stack(right)


@derived("Proposition 2 and Proposition 3, sharpened formulas")
def formula_proposition_2_sharp(T, S, Z, Z_mu, Z_nu, M, zeta, P, n, delta, R, eps, *, share=1.0):
    r"""$$\tfrac\zeta4,\quad \sqrt T (\tfrac{\zeta S}{2\sqrt2} + P),\quad T R (\tfrac{\zeta S}
    {2\sqrt2} + P) \sqrt{2\log(2n/\delta)},\quad \tfrac{S^2\sqrt{2(M+1)}}{g} \log
    \tfrac{(\zeta^{-1}-1)(1-\epsilon)}{\epsilon},\quad S^3 = \tfrac{4\sqrt{M+1}}{\sqrt T \zeta^2}$$

    With $g = (S^2-Z_\nu)(S^2-2Z_\mu) - S^2 Z_\mu$; before the last, (7) with $P T R_0^3$ in place
    of $P T^{5/2} (S+Z)^3$, where $R_0$ is the bound of Assumption 3.
    """
    head = jnp.sqrt(T) * (zeta * S / 8**0.5 + P)
    outputs = jnp.sqrt(T) * R * head * jnp.sqrt(2 * jnp.log(2 * n / delta))
    g = (S**2 - Z_nu) * (S**2 - 2 * Z_mu) - S**2 * Z_mu
    scale = S**2 * jnp.sqrt(2 * (M + 1)) / g * jnp.log((1 / zeta - 1) * (1 - eps) / eps)
    radius = jnp.sqrt(S**2 + Z**2 + 2 * Z_nu / M)
    star, _, size = equation_7(T, S, zeta, M, Z_mu, Z_nu, P * T * radius**3)
    crossover = (4 * jnp.sqrt(M + 1) / (jnp.sqrt(T) * zeta**2)) ** (1 / 3)
    left = [dm1.deora2023_first_step_slope(zeta)]
    left.append(dm1.deora2023_decoder_bound(T, S, P, zeta))
    left.append(dm1.deora2023_output_bound(T, R, S, P, zeta, n, delta))
    left.append(dm1.deora2023_saturation(S, zeta, M, eps, Z_mu, Z_nu))
    left.append(dm1.deora2023_gamma_star(T, S, zeta, M, Z_mu, Z_nu, Z, P))
    left.append(dm1.deora2023_margin_crossover(T, zeta, M))
    right = jnp.stack([zeta / 4, head, outputs, scale, star, crossover])
    lost = (S**2 + Z_nu) * (S**2 + 2 * Z_mu) / jnp.abs(g)
    return Sides(
        jnp.stack(left), share * right, jnp.abs(right).at[3].multiply(lost).at[4].set(size)
    )
