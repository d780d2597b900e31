import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.measures.attention_profile import attention_profile


def test_profile_is_that_of_each_model():
    rng = np.random.default_rng(0)
    e, k, n, H, T, d = 2, 3, 4, 2, 3, 5
    shape = MultiHead(jnp.zeros((H, T, d)), jnp.zeros((H, d, d)))
    models = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=(e, k, *a.shape))), shape)
    X = jnp.asarray(rng.normal(size=(n, T, d)))
    found = attention_profile(models, X)
    one = jax.tree.map(lambda a: a[1, 2], models)
    np.testing.assert_allclose(found.outputs[1, 2], jax.vmap(one)(X), rtol=1e-12)
    rows = np.asarray(one.attention(X[3]))
    np.testing.assert_allclose(found.mass[1, 2, 3], rows.mean(axis=(0, 1)), rtol=1e-12)
    effective = np.exp(-(rows * np.log(rows)).sum(axis=-1)).mean()
    np.testing.assert_allclose(found.effective_tokens[1, 2, 3], effective, rtol=1e-12)
