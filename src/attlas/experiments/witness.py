"""One instance of a claim in a file, so that anyone can evaluate it again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.claims.verdict import ChallengeReport
from attlas.core.errors import UserError
from attlas.experiments.arrays_file import pair_stem
from attlas.experiments.environment import environment
from attlas.experiments.pair import read_pair, remove_pair, write_pair
from attlas.experiments.store import Store
from attlas.experiments.verdicts import claim_place

FOLDER = "witnesses"


@dataclass(frozen=True, eq=False)
class StoredWitness:
    """An instance read from a file.

    Attributes:
        claim: name of the claim it is an instance of.
        arrays: the instance.
        facts: what the search that found it said (ratio, seed, steps).
        metadata: environment it was found in.
    """

    claim: str
    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]
    metadata: Mapping[str, Any]


def witness_file(store: Store, claim: str) -> Path:
    """Where the instance of a claim is stored.

    Args:
        store: results folder.
        claim: its name.

    Returns:
        Path of its JSON file, there or not.

    Examples:
        >>> print(witness_file(Store(Path("results")), "mine/triangle"))
        results/witnesses/mine/triangle.json
    """
    folder, stem = claim_place(store.root / FOLDER, claim)
    return folder / f"{stem}.json"


def write_witness(
    store: Store,
    claim: str,
    witness: Mapping[str, np.ndarray],
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write one instance of a claim; it replaces the claim's earlier one.

    Args:
        store: results folder.
        claim: name of the claim.
        witness: arrays by name.
        facts: plain JSON about the search: ratio, seed, steps.

    Returns:
        Path of its JSON file, `<root>/witnesses/<paper>/<claim>.json`.

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
    return write_pair(path.parent, path.stem, document, arrays)


def keep_witness(store: Store, claim: str, found: ChallengeReport) -> Path | None:
    """Store the best instance of a search, with what finds it again.

    Args:
        store: results folder.
        claim: name of the claim.
        found: of a search.

    Returns:
        Path of its JSON file; None where the search has no instance to keep.

    Raises:
        UserError: if the folder cannot be written or the disk is full.
    """
    if found.verdict.witness is None:
        return None
    facts = {
        "ratio": found.ratio,
        "violated": bool(found.violated),
        "seed": found.verdict.seed,
        "starts": found.starts,
        "steps": found.steps,
        "evaluations": found.evaluations,
        "method": found.method,
        "certified": found.certified,
    }
    return write_witness(store, claim, found.verdict.witness, facts)


def stored_witnesses(store: Store, claims: Iterable[str]) -> dict[str, StoredWitness]:
    """The instances that earlier searches kept; damaged ones are named in `store.notes`.

    Args:
        store: results folder.
        claims: names of claims.

    Returns:
        By claim, those that are there.
    """
    found = {}
    for claim in claims:
        path = witness_file(store, claim)
        if not path.is_file():
            continue
        try:
            found[claim] = read_witness(path)
        except UserError as error:
            store.note(str(error))
    return found


def forget_witness(store: Store, claim: str) -> bool:
    """Delete the stored instance of a claim.

    Args:
        store: results folder.
        claim: its name.

    Returns:
        Whether there was one.
    """
    path = witness_file(store, claim)
    there = path.is_file()
    remove_pair(path.parent, path.stem)
    return there


def read_witness(path: Path) -> StoredWitness:
    """Read one instance of a claim.

    Args:
        path: its JSON file, or the `.npz` file with its arrays.

    Returns:
        The instance and the name of its claim.

    Raises:
        UserError: if the file is not there, damaged, or not a witness.
    """
    try:
        pair = read_pair(path.parent, pair_stem(path), "witness")
    except Damaged as damage:
        raise UserError(f"{damage}: search again with `attlas challenge`") from damage
    if pair is None:
        raise UserError(f"no witness at {path}: name the .json file that a challenge stored")
    document, arrays = pair
    return StoredWitness(document["claim"], arrays, document["facts"], document["metadata"])
