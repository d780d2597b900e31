r"""Appendix F: the margin gamma_lin of a linear model <U, X> on the tokenized mixture.

U = 1 u_star' / (S sqrt(2 T)) has Frobenius norm 1. It is the best linear model when relevant
tokens may stand anywhere, by symmetry: the average of the best U over permutations of tokens,
of irrelevant patterns and exchange of the labels is as good.
"""

from functools import partial
from itertools import product

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Status, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from attlas.solvers.kernel_svm import kernel_svm_batch
from deora2023optimization.library.bounds.deora2023_mixture import deora2023_gamma_linear
from deora2023optimization.mixture_instances import ROUNDINGS, Mixture, inside_the_noise
from deora2023optimization.ntk_w_part import single_samples, u_part

_T = 3
_SIZE = 96
"""Samples of a complete data set of three tokens: smaller ones are repeated."""


@inequality(
    "Appendix F and last term of (7)",
    sample=partial(single_samples, tokens=5),
    search_over="noise",
    project=inside_the_noise,
    controls=[
        Control(r"$Z_\mu$ without the factor 2", noise_factor=0.5),
        Control(r"1.1 times $\gamma_{lin}$", factor=1.1),
    ],
    proof_step=ProofStep("Proposition 2, P3", 3),
    roundings=ROUNDINGS,
    evaluations=704,
)
def gamma_linear(*, noise_factor=1.0, factor=1.0, **instance):
    r"""$$y \langle \tfrac{1}{S \sqrt{2T}} 1_T u_\star^\top, X \rangle = y \langle \nabla_U
    \Phi(X; U, 0), \overline{U}_\star \rangle \ge \gamma_{lin} = \tfrac{S \sqrt T}{\sqrt 2}
    \big( \zeta - 2 (1-\zeta) \tfrac{Z_\mu}{S^2} \big)$$

    Reached at a corner of the noise, and by every sample without noise.
    """
    mix = Mixture(**instance)
    bound = deora2023_gamma_linear(mix.T, mix.S, mix.zeta, noise_factor * mix.Z_mu)
    # At W = 0 the derivative in U along U_star is the linear model.
    return Sides(factor * bound, mix.y * u_part(mix, mix.tokens), magnitude=mix.T**0.5 * mix.radius)


def _complete(M, relevant, noise, fixed):
    """All samples in coordinates (mu_+, mu_-, nu_1..) over S; noise Z_mu / S^2 at all corners."""
    corners = list(product((-noise, noise), repeat=2)) if noise else [(0.0, 0.0)]
    places = [[(r + k) % _T for k in range(relevant)] for r in range(1 if fixed else _T)]
    samples, labels = [], []
    for label, place in product((0, 1), places):
        free = [t for t in range(_T) if t not in place]
        for picks in product(product(range(M), corners), repeat=len(free)):
            X = np.zeros((_T, 4))
            X[place, label] = 1
            for t, (j, corner) in zip(free, picks, strict=True):
                X[t, :2] = corner
                X[t, 2 + j] = 1
            samples.append(X)
            labels.append(1.0 - 2 * label)
    repeats = np.arange(_SIZE) % len(labels)
    return np.array(samples)[repeats], np.array(labels)[repeats]


def _solved(rng, count, fixed):
    """Best linear margins of complete data sets with one or two irrelevant patterns."""
    S = six_decades(rng, count, -0.3, 0.7)
    kinds = [(1, 1, True), (2, 2, True), (1, 2, True), (2, 1, False)]
    laws = [kinds[i % 4] for i in range(count)]
    noise = np.array([kind[2] for kind in laws]) * rng.uniform(0.01, 0.125, count)
    sets = [
        _complete(M, relevant, share, fixed)
        for (M, relevant, _), share in zip(laws, noise, strict=True)
    ]
    X = np.stack([X for X, _ in sets]) * S[:, None, None, None]
    y = np.stack([y for _, y in sets])
    flat = X.reshape(count, _SIZE, -1)
    svm = kernel_svm_batch(flat @ flat.transpose(0, 2, 1), y)
    return {
        "S": S,
        "zeta": np.array([relevant / _T for _, relevant, _ in laws]),
        "Z_mu": noise * S**2,
        "margin": np.asarray(svm.value),
        "gap": svm.certificate["upper"] - svm.certificate["lower"],
        "certified": np.asarray(svm.converged),
    }


def anywhere(rng, count):
    """Relevant tokens at any place of a sample."""
    return _solved(rng, count, False)


def in_place(rng, count):
    """Relevant tokens at the same places in all samples."""
    return _solved(apart(rng), count, True)


solved = partial(
    identity,
    status=Status.NEW,
    assumptions=[assume("certified by the solver", lambda certified: certified)],
    count=32,
    roundings=_SIZE * ROUNDINGS,
)


def _against(S, zeta, Z_mu, margin, gap, fixed):
    """The solver's margin against the value for places that vary or are fixed."""
    value = S * jnp.sqrt(_T * zeta / 2) if fixed else deora2023_gamma_linear(_T, S, zeta, Z_mu)
    # The solver's two bounds enclose the margin of a Gram matrix rounded to eps n S^2 T.
    return Sides(margin, value, magnitude=_T * S, error=2 * gap)


@solved(
    "Appendix F, against the best linear model",
    sample=anywhere,
    controls=[
        Control(
            "the value for relevant tokens that stand at the same places in all samples", fixed=True
        )
    ],
)
def gamma_linear_optimal(S, zeta, Z_mu, margin, gap, *, fixed=False):
    r"""$$\max_{\|U\|_F = 1} \min_i y_i \langle U, X_i \rangle = \tfrac{S \sqrt T}{\sqrt 2}
    \big( \zeta - 2 (1-\zeta) \tfrac{Z_\mu}{S^2} \big)$$

    All samples of $T = 3$ tokens are in the data: each label, place of the relevant tokens,
    pattern and corner of the noise along $\mu$. So $\gamma_{lin}$ is the best linear margin, not
    only a bound.
    """
    return _against(S, zeta, Z_mu, margin, gap, fixed)


@solved(
    "Appendix F, for relevant tokens at fixed places",
    sample=in_place,
    controls=[Control(r"$\gamma_{lin}$", fixed=False)],
)
def gamma_linear_in_place(S, zeta, Z_mu, margin, gap, *, fixed=True):
    r"""$$\mathcal{R}_i = \mathcal{R}: \quad \max_{\|U\|_F = 1} \min_i y_i \langle U, X_i \rangle =
    S \sqrt{\tfrac{\zeta T}{2}} > \gamma_{lin}$$

    (DM1) leaves open whether the relevant set varies. If it does not, a linear model reads
    the relevant tokens alone: its margin is larger by $1/\sqrt\zeta$ and blind to the noise.
    """
    return _against(S, zeta, Z_mu, margin, gap, fixed)
