"""What JAX keeps of the claims that a process has checked: bounded."""

import jax

KEPT = 32
"""Claims whose programs are kept: some 5 MB each, 3 GB for all of the atlas."""
_kept: set[str] = set()


def bound_compiled(claim: str) -> None:
    """Let JAX forget what it compiled, before a claim beyond the last few is compiled.

    JAX keeps every program for as long as its function lives, and claims live as long as the
    process. What is needed again is compiled again, or read from the persistent cache.

    Args:
        claim: name of the claim that is checked next.

    Examples:
        >>> bound_compiled("mine/triangle")
    """
    if claim not in _kept and len(_kept) >= KEPT:
        jax.clear_caches()
        _kept.clear()
    _kept.add(claim)
