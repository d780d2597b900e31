import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit.head_landscape import _mixed, head_landscape
from liu2021analyzing.library.audit.single_head_path import single_head_path


def test_every_measurement_against_its_definition():
    """Two heads, three records; ten of eleven fresh samples are used."""
    rng = np.random.default_rng(4)
    e, s, n, N, T, d, tau = 2, 3, 7, 11, 5, 3, 0.3
    X, fresh = rng.normal(size=(e, n, T, d)), rng.normal(size=(e, N, T, d))
    y, fresh_y = (np.where(rng.random((e, size)) < 0.4, 1.0, -1.0) for size in (n, N))
    fresh_y[0] = [1, 1, -1, 1, -1, -1, 1, -1, -1, -1, 1]
    fresh_y[1, : N // 2] = -1.0  # labels that do not vary explain nothing
    U, W = rng.normal(size=(e, s, 1, d)), rng.normal(size=(e, s, 1, d, d))
    head = jax.vmap(jax.vmap(lambda u, w: MultiHead(u, w, Decoder.LAST)))
    path = head(jnp.asarray(U), jnp.asarray(W))
    data = [jnp.asarray(a) for a in (X, y, fresh, fresh_y)]
    seen = jax.jit(jax.vmap(single_head_path))(path, *data)
    alphas = np.array([0.6, 1.7])
    found = head_landscape(path, seen, X, y, fresh_y, tau=tau, alphas=alphas)
    assert found.smallest.shape == found.unexplained.shape == (e, s)
    for m, k in np.ndindex(e, s):
        rows = np.array([_softmax(x @ W[m, k, 0].T @ x[-1]) for x in fresh[m]])
        outputs = np.einsum("nt,ntd->nd", rows, fresh[m]) @ U[m, k, 0]
        ordered = -np.sort(-rows, axis=1)
        norms, cumulative = np.linalg.norm(rows, axis=1), np.sqrt(np.cumsum(ordered**2, axis=1))
        s0 = 1 + np.sum(cumulative < (1 - tau) * norms[:, None], axis=1)
        np.testing.assert_allclose(found.s0[m, k], s0.mean(), rtol=1e-14)
        np.testing.assert_allclose(found.top[m, k], cumulative[:, 1].mean(), rtol=1e-12)
        relative = (cumulative[:, 1] / norms).mean()
        np.testing.assert_allclose(found.relative_top[m, k], relative, rtol=1e-12)
        units, labels = (
            np.stack([np.where(a > 0, a, 0), np.where(a < 0, -a, 0)], axis=1)
            for a in (outputs, fresh_y[m])
        )
        least = np.linalg.eigvalsh(units.T @ units / N - np.outer(units.mean(0), units.mean(0)))
        np.testing.assert_allclose(found.smallest[m, k], least[0], rtol=1e-9)
        first, last = slice(0, N // 2), slice(N // 2, 2 * (N // 2))
        design = np.column_stack([np.ones(N), units])
        coefficients = np.linalg.lstsq(design[first], labels[first])[0]
        errors = labels[last] - design[last] @ coefficients
        unconditional = np.linalg.eigvalsh(np.cov(labels[first].T, bias=True))[-1]
        share = np.linalg.eigvalsh(errors.T @ errors)[-1] / (N // 2)
        expected = share / unconditional if m == 0 else 0.0
        np.testing.assert_allclose(found.unexplained[m, k], expected, rtol=1e-9)

        if k == 1:
            theta = jnp.concatenate([path.U[m, k].ravel(), path.W[m, k].ravel()])
            exact = np.linalg.eigvalsh(_risk_hessian(theta, data[0][m], data[1][m]))[-1]
            np.testing.assert_allclose(found.curvature[m, k], exact, rtol=1e-9)
    for m, j in np.ndindex(e, len(alphas)):
        z = np.array([_softmax(x @ W[m, -1, 0].T @ x[-1]) @ x for x in X[m]])
        u, w = U[m, -1, 0] * alphas[j], 1 / alphas[j]
        margin = y[m] * w * (z @ u)
        slope, bend = -1 / (1 + np.exp(margin)), 1 / (2 + np.exp(margin) + np.exp(-margin))
        jacobian = y[m][:, None] * np.column_stack([w * z, z @ u])  # of the margin in (u, w)
        hessian = (jacobian * bend[:, None]).T @ jacobian / n
        mixed = (slope * y[m]) @ z / n
        hessian[:d, d] += mixed
        hessian[d, :d] += mixed
        np.testing.assert_allclose(found.orbit[m, j], np.linalg.eigvalsh(hessian)[-1], rtol=1e-9)


@jax.jit
@jax.hessian
def _risk_hessian(theta, X, y):
    d = X.shape[2]
    logits = jnp.einsum("nd,de,nte->nt", X[:, -1], theta[d:].reshape(d, d), X)
    outputs = jnp.einsum("nt,ntd,d->n", jax.nn.softmax(logits, axis=1), X, theta[:d])
    return jnp.mean(jnp.log1p(jnp.exp(-y * outputs)))


def _softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum()


def test_logits_beyond_the_exponential_select_one_token():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(1, 3, 4, 2)), 1e5 * rng.normal(size=(1, 2, 2))
    chosen = np.argmax(np.einsum("nd,df,ntf->nt", X[0, :, -1], W[0], X[0]), axis=1)
    np.testing.assert_allclose(_mixed(W, X)[0], X[0, np.arange(3), chosen], rtol=1e-14)
