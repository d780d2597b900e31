"""The union bound of docs/proofs/liu2021_sample_size.md, as three claims evaluate it."""

import math

import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Sides


def terms(B, C_2, d, blocks, gamma, known):
    """Logarithm of the cover, the exponent per draw, and what may fail.

    Blocks are pairs: how many parameters besides w, and their stretch.
    """
    M = max(2 * C_2 * B**2, known.noise * B)
    level = known.smallest * (gamma**2 - C_2**2 * known.residual)
    rho = min(1.0, math.sqrt(level) / ((4 + 12 * len(blocks)) * M))
    entropy = d * math.log(3 / rho)
    entropy += sum(count * math.log(3 * max(1.0, L) / rho) for count, L in blocks)
    return entropy, level / (128 * M**2), known.failure


def batch(draw, rng, count):
    """Rows (corrected size, printed size, terms) as arrays."""
    rows = []
    for _ in range(count):
        n, printed, bound = draw(rng)
        rows.append((n, max(printed, 0.0), *bound))
    n, printed, entropy, exponent, failure = np.array(rows).T
    sizes = {"n": n, "printed": printed}
    return sizes | {"entropy": entropy, "exponent": exponent, "failure": failure}


def what_fails(n, entropy, exponent, failure):
    """What the union bound leaves, over what is allowed; the right side is one."""
    # The network's deviation, the noise at the centres, the noise between them.
    deviation, noise = math.log(2) + entropy - n * exponent, 0.5 + entropy - 2 * n * exponent
    parts = jnp.exp(jnp.minimum(jnp.stack([deviation, noise, -n / 2]), 50.0))
    left = jnp.sum(parts) / failure
    # Exponents of the size of the entropy are rounded before they are raised.
    return Sides(left, jnp.ones_like(left), left * (1 + entropy))
