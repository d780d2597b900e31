r"""What one set of examples was used for: every look at it has a share of delta.

The j-th look has the share $\delta/(j(j+1))$ for all results that the looks before it may have
had: n + 1 counts of errors of each earlier model, with the values of its test of order. So a model
may be changed after its errors were seen, and every certificate that was issued stays true.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attlas._files.budget import CONFIGURATION, parse_json
from attlas._files.file_changes import folder_lock, write_file
from attlas._files.plain_file import Damaged, read_plain_file
from attlas._files.sealed_json import sealed, unsealed
from attlas.certificates.checks import ORDERS
from attlas.certificates.predictions import Predictions
from attlas.core.errors import UserError, refuse_misfits, refuse_unreadable

MOST_NATS = 600.0
"""Logarithm of the smallest share, at which limits are still computed in double precision."""
_SCHEMA = 2
_KEYS = {"schema", "delta", "examples", "looks"}


@dataclass(frozen=True)
class Ledger:
    """The looks at one set of examples.

    Attributes:
        delta: probability that any certificate of this set fails, at any look.
        examples: their number.
        looks: the models of each look, by the digests of their losses, sorted.
    """

    delta: float
    examples: int
    looks: tuple[tuple[str, ...], ...] = ()

    def look(self, several: Sequence[Predictions]) -> tuple["Ledger", float]:
        r"""The ledger with this look, and the look's share of delta.

        $$\frac1{j(j+1)}\big((n+1)(O+1)\big)^{-M}$$

        O is the number of random orders of the test of order, and M the number of models in the
        looks before. Models that were looked at together before have the share that they had.

        Raises:
            UserError: if the examples are not as many as those of the ledger, losses are not
                counted errors, or nothing is left.

        Examples:
            >>> from attlas.certificates.predictions import predictions_of
            >>> a, b = predictions_of("a", [0.0, 1]), predictions_of("b", [1.0, 1])
            >>> ledger, share = Ledger(0.05, 2).look([a])
            >>> [f"{part:.6f}" for part in (share, ledger.look([b])[1], ledger.look([a])[1])]
            ['0.500000', '0.000056', '0.500000']
        """
        count = several[0].losses.size
        if count != self.examples:
            raise UserError(
                f"the ledger is about {self.examples} examples and the files have {count}: keep a "
                "ledger for each test set"
            )
        models = tuple(sorted(model.digest for model in several))
        if not all(model.counted for model in several):
            raise UserError("a ledger prices results that are counts: give errors, 0 or 1 each")
        looks = self.looks if models in self.looks else (*self.looks, models)
        place = looks.index(models)
        before = sum(map(len, looks[:place]))
        cost = before * math.log((count + 1) * (ORDERS + 1)) + math.log((place + 1) * (place + 2))
        if cost > MOST_NATS:
            raise UserError(
                f"{before} models were tested on these {count} examples, and nothing is left for "
                "another one: take new examples"
            )
        return replace(self, looks=looks), math.nextafter(math.exp(-cost), 0)


@refuse_unreadable
def take_look(path: Path, delta: float, several: Sequence[Predictions]) -> float:
    """Write a look into the ledger of a file, and return its share of delta.

    The file is locked meanwhile, and written before the result is known: a look that was not
    written down would not be paid for, and the same models have the same share another time.

    Raises:
        UserError: as `read_ledger` and `Ledger.look` do; if the file cannot be written.

    Examples:
        >>> import tempfile
        >>> from attlas.certificates.predictions import predictions_of
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "looks.json"
        ...     shares = [take_look(file, 0.05, [predictions_of("a", [0.0])]) for _ in range(2)]
        >>> shares[0] == shares[1] < 0.5
        True
    """
    with _written(path), folder_lock(path.absolute().parent):
        ledger, share = read_ledger(path, delta, several[0].losses.size).look(several)
        write_ledger(path, ledger)
    return share


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    """Refuse a file that the system does not let be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{path} cannot be written ({reason}): free space or rights there"
        ) from error


def read_ledger(path: Path, delta: float, examples: int) -> Ledger:
    """The ledger of a file; a new one where there is no file.

    Raises:
        UserError: if the file is no ledger, or has another delta.

    Examples:
        >>> read_ledger(Path("/never/written.json"), 0.05, 100).looks
        ()
    """
    try:
        content = read_plain_file(path, CONFIGURATION.bytes)
        if content is None:
            return Ledger(delta, examples)
        ledger = _ledger(parse_json(content, CONFIGURATION))
    except Damaged as damage:
        text = str(damage) if str(path) in str(damage) else f"{path} {damage}"
        raise UserError(f"{text}: restore the ledger, or take new examples") from None
    if ledger.delta != delta:
        raise UserError(
            f"{path} shares out a delta of {ledger.delta:g}: use --delta {ledger.delta:g}"
        )
    return ledger


def _ledger(document: Any) -> Ledger:
    if isinstance(document, dict) and document.get("schema") == _SCHEMA:
        document = unsealed(document)
    elif not isinstance(document, dict) or document.get("schema") != 1:  # without a seal
        raise Damaged("is no ledger of certificates")
    if set(document) != _KEYS:
        raise Damaged("is no ledger of certificates")
    delta, examples, looks = document["delta"], document["examples"], document["looks"]
    sound = (
        isinstance(delta, float)
        and 0 < delta < 1
        and type(examples) is int
        and isinstance(looks, list)
        and all(isinstance(look, list) and all(isinstance(m, str) for m in look) for look in looks)
    )
    if not sound:
        raise Damaged("is no ledger of certificates")
    return Ledger(delta, examples, tuple(tuple(look) for look in looks))


@refuse_misfits
def write_ledger(path: Path, ledger: Ledger) -> None:
    """Write a ledger, completely or not at all.

    Raises:
        UserError: if it cannot be written.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_ledger(Path(folder) / "looks.json", Ledger(0.05, 100))
        ...     read_ledger(Path(folder) / "looks.json", 0.05, 100)
        Ledger(delta=0.05, examples=100, looks=())
    """
    document = {
        "schema": _SCHEMA,
        "delta": ledger.delta,
        "examples": ledger.examples,
        "looks": [list(look) for look in ledger.looks],
    }
    with _written(path):
        write_file(path, [json.dumps(sealed(document), indent=1).encode()])
