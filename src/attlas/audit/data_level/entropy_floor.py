import jax, jax.numpy as jnp
@jax.jit
def entropy_floor(spread, tokens):
    s, T = jnp.asarray(spread), jnp.asarray(tokens)
    others = jnp.maximum(T - 1, 1.0)
    beta = jnp.exp(-s * jnp.sqrt(T / others))
    rest = others * beta
    return jnp.where(T > 1, jnp.log1p(rest) + s * jnp.sqrt(T * others) * beta / (1 + rest), 0.0)
