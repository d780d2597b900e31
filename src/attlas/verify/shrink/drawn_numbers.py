"""Arrays that a sampler computes are made simpler through the numbers that it draws.

A direction x / ||x|| or a covariance F F^T is no output of one call, and no simpler array need be
one that the sampler can give. The numbers behind an instance are moved in their place, as a search
does, and the sampler makes the instance of them: zeros, ones and short numbers become a coordinate
direction, or the identity.
"""

from collections.abc import Sequence

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.sides import Batch
from attlas.core.errors import UserError
from attlas.core.names import parameters
from attlas.verify.shrink.support import Support
from attlas.verify.space import Block, Draws

Arrays = dict[str, np.ndarray]
_ENDS = {"normal": Support(-8.0, 8.0), "uniform": Support(0.0, 1.0)}
"""Where recorded numbers lie, in units of the scale or interval of their call."""


class DrawnNumbers:
    """The numbers that a sampler draws for one instance, and the instances that it makes of others.

    Attributes:
        start: numbers of the instance by the place of their call.
        supports: where they may lie.
        count: instances that are made at once.
    """

    def __init__(self, space: Draws, row: int, count: int):
        self._space, self.count = space, count
        places = {
            str(place): place
            for place, block in space.blocks.items()
            if len(block.values) == count and block.law in _ENDS
        }
        self._places = places
        self.start = {
            name: np.asarray(space.blocks[place].values[row]) for name, place in places.items()
        }
        self.supports = {name: _ENDS[space.blocks[place].law] for name, place in places.items()}

    def instances(self, candidates: Sequence[Arrays]) -> Batch | None:
        """A batch whose first instances are made of the candidates; None where the sampler fails.

        Args:
            candidates: numbers by place, at most `count` of them.
        """
        blocks = dict(self._space.blocks)
        for name, place in self._places.items():
            values = np.array(blocks[place].values)
            values[: len(candidates)] = [numbers[name] for numbers in candidates]
            blocks[place] = Block(values, blocks[place].rows, blocks[place].law)
        return self._space.batch(blocks)


def drawn_numbers(claim: Claim, witness: Arrays, seed: int, count: int) -> DrawnNumbers | None:
    """The numbers behind a witness, or those of another instance where it was not drawn itself.

    A search moved the numbers of a witness that is none of the draws: then simple numbers are tried
    in the place of those of the first instance.

    Args:
        seed: seed of the draws.
        count: number of instances that were drawn.

    Returns:
        None where arrays are searched over, or the sampler takes a key or fails.
    """
    if claim.search_over or parameters(claim.sample).arrays[:1] == ("key",):
        return None
    try:
        batch = claim.draw(seed, count)
        rows = np.all(
            [
                np.all(np.asarray(value) == witness[name], axis=tuple(range(1, np.ndim(value))))
                for name, value in batch.items()
            ],
            axis=0,
        )
        return DrawnNumbers(Draws(claim, batch, seed), int(np.argmax(rows)), count)
    except (TypeError, ValueError, ArithmeticError, RuntimeError, KeyError, UserError):
        return None  # the sampler of a stored witness takes no such call, or gives other arrays
