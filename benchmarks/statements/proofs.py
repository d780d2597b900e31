"""Which public statements `attlas prove` proves: true ones, and of the false ones none.

    python -m benchmarks.statements.proofs [--false] [--half open] [--seconds 5]

A statement is given up after a number of processor seconds. Of the half `open`, on which methods
are developed, as of `closed`, every statement is printed with its method or with what stops it;
nothing is written.
"""

import argparse
import signal
import time
from typing import Any

from attlas.claims.proof import Proof
from attlas.verify.proofs.prover import prove
from benchmarks.interleave import pin_to_one_core
from benchmarks.statements.__main__ import statements
from benchmarks.statements.methods import HALVES


class _OutOfTime(BaseException):
    """A statement has had its processor seconds; no `except Exception` takes it."""


def _stop(*_: Any) -> None:
    raise _OutOfTime


def main() -> None:
    """Try to prove each statement, and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=HALVES, help="one half alone")
    parser.add_argument("--false", action="store_true", help="the false statements")
    parser.add_argument("--seconds", type=float, help="processor seconds for each search")
    parser.add_argument("--most", type=float, default=40.0, help="processor seconds a statement")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    for half in [options.half] if options.half else HALVES:
        proved, tried = 0, 0
        for truth, claim in statements(half):
            if truth is options.false:
                continue
            started = time.process_time()
            # Again each second: a callback in which it is raised swallows it.
            signal.setitimer(signal.ITIMER_PROF, options.most, 1.0)
            try:
                try:
                    result = prove(claim, seconds=options.seconds)
                finally:  # which the signal may interrupt too
                    signal.setitimer(signal.ITIMER_PROF, 0)
            except _OutOfTime:
                signal.setitimer(signal.ITIMER_PROF, 0)
                result = f"not within {options.most:g} seconds"
            text = result.sentence() if isinstance(result, Proof) else f"not proved: {result}"
            print(f"{claim.name} ({time.process_time() - started:.1f} s): {text}", flush=True)
            proved, tried = proved + isinstance(result, Proof), tried + 1
        print(f"{half}: {proved} of {tried} proved", flush=True)


if __name__ == "__main__":
    pin_to_one_core()
    main()
