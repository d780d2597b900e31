"""One instance of a claim in a file, for anyone to evaluate again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.file_changes import pair_stem
from attlas._files.plain_file import Damaged
from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import ChallengeReport
from attlas.core.errors import UserError
from attlas.experiments.environment import environment
from attlas.experiments.pair import read_pair, remove_pair, write_pair
from attlas.experiments.store import WITNESSES, Store, claim_place


@dataclass(frozen=True, eq=False)
class StoredWitness:
    """An instance read from a file.

    Attributes:
        facts: ratio, seed and steps of the search.
        metadata: environment of the search.
    """

    claim: str
    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]
    metadata: Mapping[str, Any]


def witness_file(store: Store, claim: str) -> Path:
    """Path of the JSON file for the instance of a claim, whether it exists or not.

    Examples:
        >>> print(witness_file(Store(Path("results")), "mine/triangle"))
        results/witnesses/mine/triangle.json
    """
    folder, stem = claim_place(store.root / WITNESSES, claim)
    return folder / f"{stem}.json"


def write_witness(
    store: Store,
    claim: str,
    witness: Mapping[str, np.ndarray],
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write an instance to `<root>/witnesses/<paper>/<claim>.json`, replacing an older one.

    Args:
        facts: plain JSON about the search: ratio, seed, steps.

    Raises:
        UserError: if the folder cannot be written or the disk is full.
    """
    document = {
        "kind": "witness",
        "claim": claim,
        "facts": dict(facts or {}),
        "metadata": environment(),
    }
    path = witness_file(store, claim)
    arrays = {name: np.asarray(value) for name, value in witness.items()}
    return write_pair(path.parent, path.stem, document, arrays, store.note)


def keep_witness(
    store: Store, claim: str, report: ChallengeReport, shrunk: ShrunkWitness | None = None
) -> Path | None:
    """Store the best instance of a search with the seed and numbers that reproduce it.

    Args:
        shrunk: a simpler instance, which is stored in its place, with its own ratio.

    Returns:
        Path of the JSON file; None if the search has no instance.

    Raises:
        UserError: if the folder cannot be written or the disk is full.
    """
    if report.verdict.witness is None:
        return None
    facts = {
        "ratio": report.ratio,
        "violated": bool(report.violated),
        "seed": report.verdict.seed,
        "starts": report.starts,
        "steps": report.steps,
        "evaluations": report.evaluations,
        "method": report.method,
        "certified": report.certified,
    }
    if shrunk is None:
        return write_witness(store, claim, report.verdict.witness, facts)
    facts |= {"ratio": shrunk.ratio, "shrunk": shrunk.document()}
    return write_witness(store, claim, shrunk.arrays, facts)


def stored_witnesses(store: Store, claims: Iterable[str]) -> dict[str, StoredWitness]:
    """The stored instances by claim; damaged ones are named in `store.notes`."""
    witnesses = {}
    for claim in claims:
        path = witness_file(store, claim)
        if not path.is_file():
            continue
        try:
            witnesses[claim] = read_witness(path)
        except UserError as error:
            store.note(str(error))
    return witnesses


def forget_witness(store: Store, claim: str) -> bool:
    """Delete the stored instance of a claim; returns whether there was one."""
    path = witness_file(store, claim)
    existed = path.is_file()
    remove_pair(path.parent, path.stem)
    return existed


def read_witness(path: Path) -> StoredWitness:
    """Read an instance from its JSON file or the `.npz` file with its arrays.

    Raises:
        UserError: if the file is not there, damaged, or not a witness.
    """
    try:
        pair = read_pair(path.parent, pair_stem(path), "witness")
    except Damaged as damage:
        raise UserError(f"{damage}: search again with `attlas challenge`") from damage
    if pair is None:
        raise UserError(f"there is no witness at {path}: name the .json file of a challenge")
    document, arrays = pair
    return StoredWitness(document["claim"], arrays, document["facts"], document["metadata"])
