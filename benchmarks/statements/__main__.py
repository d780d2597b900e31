"""Detection and false alarms of the challenge on public statements, beside random draws.

Every statement is searched for the same processor time by the challenge, by fresh draws, by the
moves and by covariance adaptation alone. The statements are divided by the SHA-256 of their names:
methods are developed on the half `open`, and the half `closed` is for the report alone.
"""

import argparse
import hashlib
import importlib
import time
from pathlib import Path

from attlas.claims.claim import Claim
from attlas.verify.challenge import challenge

METHODS = ("auto", "draws", "moves", "evolution")


def statements(half: str) -> list[tuple[bool, Claim]]:
    """The statements of a half with their truth.

    Args:
        half: `open` or `closed`, by whether the digest of the name is even.
    """
    chosen = []
    for path in sorted(Path(__file__).parent.glob("*_*.py")):
        truth = path.stem.partition("_")[0]
        if truth not in ("true", "false"):
            continue
        module = importlib.import_module(f"benchmarks.statements.{path.stem}")
        for claim in vars(module).values():
            if isinstance(claim, Claim) and Path(claim.place[0]) == path:
                even = hashlib.sha256(claim.name.encode()).digest()[-1] % 2 == 0
                if even == (half == "open"):
                    chosen.append((truth == "true", claim))
    return chosen


def main() -> None:
    """Search each statement by each method, and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("open", "closed"), default="open")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    listed = statements(options.half)
    for method in options.methods:
        found, missed, alarms, started = 0, [], [], time.process_time()
        for truth, claim in listed:
            violated = challenge(claim, method=method, seconds=options.seconds).violated
            found += violated and not truth
            alarms += [claim.name] if violated and truth else []
            missed += [] if violated or truth else [claim.name]
        false = sum(not truth for truth, _ in listed)
        each = (time.process_time() - started) / len(listed)
        print(f"{method}: {found} of {false} false statements found, {len(alarms)} false alarms "
              f"on {len(listed) - false} true ones, {each:.2f} s of processor each")  # fmt: skip
        print(f"  missed {', '.join(missed)}\n  alarms {', '.join(alarms)}", flush=True)


if __name__ == "__main__":
    main()
