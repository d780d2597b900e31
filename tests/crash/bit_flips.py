"""Flip one bit at a time in everything that attlas wrote, and say what was lost or not noticed.

    python -m crash.bit_flips FOLDER FLIPS SEED

Prints one JSON object: by writer how many were tried and how many its reader noticed (the others
changed nothing that is read), and a list of faults. What the store keeps is also written anew, and
the damaged file must be set aside; the other files are refused until their user acts.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from crash.refused import FLIPPED
from crash.writers import DAMAGED, SEALED, Writer, freeze_clocks

OLD, NEW = 1, 2


def flipped(root: Path, files: str, rng: np.random.Generator) -> Path:
    """Flip a random bit of a random one of some files; returns the file."""
    paths = sorted(path for path in root.rglob(files) if path.is_file())
    path = paths[rng.integers(len(paths))]
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return path


def tried(writer: Writer, room: Path, rng: np.random.Generator) -> tuple[bool, str]:
    """One flip: whether it was noticed, and what was wrong."""
    root = room / "now"
    if writer.read(room / "before") == DAMAGED:
        return False, "it is read as damaged before a bit is flipped"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(room / "before", root)
    whole = writer.read(root)
    path = flipped(root, ".verified*" if writer.name == "index" else "*", rng)
    damaged, seen = path.read_bytes(), writer.read(root)
    if seen not in (DAMAGED, whole):
        return False, f"{path.name} is read as {str(seen)[:99]}"
    is_noticed = seen == DAMAGED
    if writer in FLIPPED:
        return is_noticed, ""
    notes = writer.write(root, NEW) or []
    if is_noticed and not notes:
        return True, f"{path.name} is replaced without a line"
    if is_noticed and damaged not in [p.read_bytes() for p in root.rglob("*") if p.is_file()]:
        return True, f"{path.name} is lost: it was not set aside"
    return is_noticed, "" if writer.read(root) != DAMAGED else "it stays damaged"


def main(folder: str, flips: str, seed: str) -> None:
    """Flip bits of every sealed kind in turn, and print the counts and the faults."""
    freeze_clocks()
    rng = np.random.default_rng(int(seed))
    kinds = (*SEALED, *FLIPPED)
    outcome: dict[str, Any] = {"seed": int(seed), "tried": {}, "noticed": {}, "faults": []}
    for number in range(int(flips)):
        writer = kinds[number % len(kinds)]
        room = Path(folder) / writer.name
        if not room.exists():
            (room / "before").mkdir(parents=True)
            next(iter(writer.starts.values()))(room / "before")
        is_noticed, fault = tried(writer, room, rng)
        for name, count in (("tried", 1), ("noticed", is_noticed)):
            outcome[name][writer.name] = outcome[name].get(writer.name, 0) + count
        if fault:
            outcome["faults"].append({"writer": writer.name, "flip": number, "fault": fault})
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
