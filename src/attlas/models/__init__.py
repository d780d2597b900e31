"""Models of attention; each takes one example, batches use `jax.vmap`."""
