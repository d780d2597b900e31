r"""The local Lipschitz certificate: the norm of a head's Jacobian at its tokens.

Logits l_ij, weights P, w_ij and u_ij the derivatives of l_ij by x_i and x_j, covariances Cov_i
under row i of P, lambda_i = ||V Cov_i(x, x) V'||.
"""

import jax.numpy as jnp

from attlas._jax.factorising import after
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from attlas.norms.matrix import spectral_norm
from attlas_audit.heads import (
    ROUNDINGS,
    Head,
    attend,
    certificate,
    jacobian_gain,
    jacobian_norm,
    large_heads,
    small_heads,
)

_PARTS = [
    Control("without the tokens that are read", read=0.0),
    Control("without the tokens that ask", asking=0.0),
    Control("without the tokens that are asked", asked=0.0),
]


def _total(result, read, asking, queried):
    return read * result.by_values + asking * result.by_queries + queried * result.by_keys


@inequality(
    "Local certificate",
    sample=small_heads,
    status=Status.NEW,
    search_over=("X", "W_Q", "W_K", "W_V", "b_Q", "angle"),
    roundings=ROUNDINGS,
    count=48,
    controls=[*_PARTS, Control("nine tenths of the certificate", read=0.9, asking=0.9, asked=0.9)],
)
def local_certificate(
    X, W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle, *, read=1.0, asking=1.0, asked=1.0
):
    r"""$$\|J\|_2\le\|V\|\,\|P\|_2+\max_i\|V\operatorname{Cov}_i(x,w_i)\|
    +\sqrt{\max_j\|\sum_i\lambda_i\,p_{ij}\,u_{ij}u_{ij}^\top\|}$$

    Any mask, biases and rotary positions, where w and u depend on both tokens. Attained by a sink,
    $P=\mathbf 1e_1^\top$, where it is $\sqrt n\,\|V\|$. The Jacobian is formed in full, by
    automatic differentiation. Proof: papers/attlas_audit/proofs/certificates.md.
    """
    head = Head(W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle)
    norm = jacobian_norm(head, X)
    result = certificate(head._replace(W_O=after(W_O, norm)), X)
    return norm, _total(result, read, asking, asked)


@inequality(
    "Local certificate, up to 64 tokens in 64 dimensions",
    sample=large_heads,
    status=Status.NEW,
    search_over=("X", "D"),
    roundings=ROUNDINGS,
    count=32,
    controls=[Control("half of the certificate", read=0.5, asking=0.5, asked=0.5)],
    evaluations=32,
)
def local_certificate_large(
    X, D, W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle, *, read=1.0, asking=1.0, asked=1.0
):
    r"""$$\frac{|JD|}{|D|}\le\|V\|\,\|P\|_2+\max_i\|V\operatorname{Cov}_i(x,w_i)\|
    +\sqrt{\max_j\|\sum_i\lambda_i\,p_{ij}\,u_{ij}u_{ij}^\top\|}$$

    2 to 64 tokens in 2 to 64 dimensions, 8 per head. The direction D is a start of three power
    iterations, and a search moves it with the tokens.
    """
    head = Head(W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle)
    return jacobian_gain(head, X, D), _total(certificate(head, X), read, asking, asked)


@inequality(
    "Local certificate, in three numbers of the map",
    sample=small_heads,
    status=Status.NEW,
    roundings=ROUNDINGS,
    count=48,
    controls=[Control("the mean column sum, 1, in place of the largest", largest=False)],
)
def local_certificate_columns(X, W_Q, b_Q, W_K, b_K, W_V, W_O, seen, *, largest=True):
    r"""$$\max_j\|\sum_i\lambda_i\,p_{ij}\,u_iu_i^\top\|\le
    \max_j\sum_ip_{ij}\;\max_i\lambda_i\,|u_i|^2$$

    Without positions u_ij = u_i = A'x_i + a. Of P, the right side needs its largest column sum.
    """
    head = Head(W_Q, b_Q, W_K, b_K, W_V, W_O, seen, jnp.zeros((X.shape[0], 1)))
    queried = certificate(head, X).by_keys
    _, (P, q, _, v) = attend(head, X)
    rows = v @ W_O
    means = P @ rows
    spread = jnp.einsum("ij,ja,jb->iab", P, rows, rows) - means[:, :, None] * means[:, None, :]
    lam = spectral_norm(after(spread, queried))
    lengths = jnp.sum((q @ W_K.T) ** 2, axis=1)
    columns = jnp.max(jnp.sum(P, axis=0)) if largest else jnp.asarray(1.0)
    # Both squared; covariances are differences of terms of the rows' size.
    size = jnp.max(jnp.sum(rows**2, axis=1)) * jnp.max(lengths) * P.shape[0]
    return Sides(
        certificate(head, X).by_keys ** 2, columns * jnp.max(lam * lengths), magnitude=size
    )
