"""Workers look for cycles as seldom as the process that starts them, and cycles are still freed."""

import gc
import weakref

from attlas._jax.cycles import look_for_cycles_seldom
from attlas._jax.processes import worker_pool


class _Ring:
    def __init__(self):
        self.own = self


def test_a_worker_looks_seldom():
    look_for_cycles_seldom()
    with worker_pool(1) as pool:
        assert pool.submit(gc.get_threshold).result() == gc.get_threshold()


def test_cycles_are_freed_in_the_end():
    look_for_cycles_seldom()
    gone = weakref.ref(_Ring())
    kept = [[] for _ in range(2 * gc.get_threshold()[0])]
    assert len(kept) > gc.get_threshold()[0]
    assert gone() is None
