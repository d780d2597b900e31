"""How JAX is used here: compilation, its cache, devices, factorisations and processes."""
