"""Check claims, each at a seed, as named on standard input; write their controls and defects."""

import json
import os
import sys

from attlas._jax.processes import checker_variables

if __name__ == "__main__":  # before JAX starts
    os.environ.update(checker_variables(2))

import jax

from attlas.claims.claim import Claim
from attlas.verify.check import check, draw_batch
from attlas.verify.check_many import RUN_ALPHA
from attlas.verify.registry import find_claims
from attlas.verify.searchable import is_searchable
from attlas.verify.space import space_of


def _moves(claim: Claim, seed: int) -> bool:
    """Whether an attack of a searchable claim has numbers to move; true of all others."""
    if not is_searchable(claim):
        return True
    with jax.enable_x64(True):
        return bool(space_of(claim, draw_batch(claim, seed, claim.count), seed).blocks)


def main() -> None:
    """One line of JSON, in the order of the names."""
    found = {}
    claims = {claim.name: claim for claim in find_claims()}
    for name, seed in json.load(sys.stdin).items():
        # What a run of all claims grants each: controls must be decided there too.
        report = check(claims[name], seed=seed, alpha=RUN_ALPHA / (2 * len(claims)), challenge=0)
        found[name] = {
            "controls": len(report.controls),
            "defects": list(report.defects),
            "remote": report.remote,
            "moves": _moves(claims[name], seed),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
