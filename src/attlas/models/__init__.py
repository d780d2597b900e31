"""Apply: attention models, one example in, vmap outside."""
