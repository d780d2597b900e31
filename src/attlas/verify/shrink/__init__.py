"""A violating instance is made simpler, inside what its sampler declares, and confirmed again."""
