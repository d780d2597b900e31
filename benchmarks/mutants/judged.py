"""Survivors that were looked at: `survivors/<area>.toml` says why each is no error.

A table of a file's functions; a key is a mutant without its file, an operator of a function, or a
whole function: "f:literal shifted@12", "f:literal shifted" or "f". The reason says whether the
mutant computes the same ("Equivalent"), costs more or less time or memory alone ("Cost"), or is
true too ("True"), and why.
"""

import tomllib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "survivors"


@cache
def reasons() -> dict[str, str]:
    """The reasons by file and key, joined by a colon."""
    return {
        f"{file}:{key}": " ".join(reason.split())
        for toml in sorted(FOLDER.glob("*.toml"))
        for file, entries in tomllib.loads(toml.read_text("utf-8")).items()
        for key, reason in entries.items()
    }


def judgement(name: str) -> str:
    """Why a mutant is no error; nothing where nobody has looked at it.

    Args:
        name: file, function, operator and position.
    """
    operator = name.rpartition("@")[0]
    keys = (name, operator, operator.rpartition(":")[0])
    return next((reasons()[key] for key in keys if key in reasons()), "")
