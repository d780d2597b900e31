"""A bound on the compiled programs that JAX holds for the claims that a process has checked."""

import jax

MAX_CLAIMS = 32
"""Claims whose programs stay in memory: some 5 MB each, 3 GB for all papers."""
_compiled: set[str] = set()


def bound_compiled(claim: str) -> None:
    """Clear the programs that JAX compiled, before one more claim than `MAX_CLAIMS` is compiled.

    JAX holds every program for as long as its function lives, and claims live as long as the
    process. A program that is needed again is compiled again, or read from the persistent cache.

    Args:
        claim: name of the claim that is checked next.

    Examples:
        >>> bound_compiled("mine/triangle")
    """
    if claim not in _compiled and len(_compiled) >= MAX_CLAIMS:
        jax.clear_caches()
        _compiled.clear()
    _compiled.add(claim)
