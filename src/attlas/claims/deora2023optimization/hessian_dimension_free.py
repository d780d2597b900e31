r"""Our bounds on the Hessian of one head, without the dimension d; proof in the docs.

R = ||X||_{2,inf} is the longest token; the rest as in Proposition 1.
"""

from functools import partial

from attlas.bounds.optimisation.deora2023_model import deora2023_hessian
from attlas.claims.deora2023optimization.instances import ROUNDINGS, single_heads
from attlas.claims.deora2023optimization.proposition_1 import hessian_norm
from attlas.core.claim import Control, Status
from attlas.core.statement import inequality

_HUGE = 1e12
"""Scale of a decoder at which a bound over it is the part that the decoder multiplies."""
sharpened = partial(
    inequality, status=Status.SHARPENED, sample=single_heads, count=32, roundings=ROUNDINGS
)


@sharpened(
    "Proposition 1, second item, without the dimension",
    sample=partial(single_heads, tokens=3, d=3),
    search_over=("X", "U", "W"),
    controls=[Control("without the second term", scale=_HUGE)],
)
def hessian_dimension_free(X, U, W, *, scale=1.0):
    r"""$$\|\nabla^2_\theta \Phi(X;\theta)\| \le 2 R^4 \sum_{t=1}^T \|X u_t\|_\infty +
    \sqrt{T} R^3,\quad R = \|X\|_{2,\infty}$$

    No dimension $d$: the second derivative in $W$ is a third central moment of the softmax law.
    Carried through Corollary 1 the heads that Theorem 1 requires shrink by $d^2$. Attained
    at $U = 0$ by two opposite tokens; for large decoders 2 may be $4/(3 \sqrt 3)$.
    """
    return hessian_norm(X, U, W), deora2023_hessian(X, scale * U, "dimension_free") / scale


@sharpened(
    "Proposition 1, second item, sharpest",
    search_over=("X", "U", "W"),
    controls=[Control("$c$ alone", scale=_HUGE)],
)
def hessian_sharp(X, U, W, *, scale=1.0):
    r"""$$\|\nabla^2_\theta \Phi(X;\theta)\| \le \frac12 \big(c + \sqrt{c^2 + 4 T R^6}\big),
    \quad c = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_t\|_\infty$$

    $4/(3 \sqrt 3) = 0.770$ is the largest third central moment $|E (a - Ea)(b - Eb)^2|$ of
    numbers in $[-1, 1]$; it is reached at weights $(1 \pm 1/\sqrt 3)/2$ on two opposite tokens,
    so that the bound is attained for large decoders (the first instance), and at $U = 0$.
    """
    return hessian_norm(X, U, W), deora2023_hessian(X, scale * U, "sharp") / scale
