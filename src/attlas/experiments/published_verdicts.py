"""The published verdicts: the last reports of all claims, without witnesses, in one file.

They are `verdicts.json.gz` beside the published records. Pages show them where a results folder has
no verdict of its own.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attlas._files.file_changes import write_file
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.claims.verdict import CheckReport
from attlas.experiments.packed import canonical_json
from attlas.experiments.proofs import read_proofs, with_proof
from attlas.experiments.report_document import report_document, report_of
from attlas.experiments.store import Store

VERDICTS = "verdicts.json.gz"
_LARGEST, _LARGEST_TEXT = 2**22, 2**25
_LEFT_OUT = ("inputs",)


def write_verdicts(
    verdicts: Iterable[tuple[CheckReport, Mapping[str, Any]]], folder: Path | str
) -> Path:
    """Write reports with their metadata, sorted by claim; equal reports give an equal file.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_verdicts([], folder).name, published_verdicts(Store(folder))
        ('verdicts.json.gz', ())
    """
    entries = [
        {
            "report": report_document(report),
            "metadata": {k: v for k, v in metadata.items() if k not in _LEFT_OUT},
        }
        for report, metadata in sorted(verdicts, key=lambda pair: pair[0].claim)
    ]
    text = canonical_json({"kind": "verdicts", "verdicts": entries}).encode()
    path = Path(folder) / VERDICTS
    write_file(path, [gzip.compress(text, mtime=0)])
    return path


def published_verdicts(store: Store) -> tuple[tuple[CheckReport, dict[str, Any]], ...]:
    """The published reports with their metadata and proofs; none where nothing is published.

    A file that cannot be read is named in `store.notes` and ignored.

    Examples:
        >>> published_verdicts(Store("never-made"))
        ()
    """
    path = store.root / VERDICTS
    try:
        packed = read_plain_file(path, _LARGEST)
        if packed is None:
            return ()
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            text = file.read(_LARGEST_TEXT)
            if file.read(1):  # the checksum is read with the end
                raise Damaged(f"it has more than {_LARGEST_TEXT} bytes")
        pairs = [report_of(entry, {}) for entry in json.loads(text)["verdicts"]]
    except (Damaged, OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        store.note(f"{path} is not a file of published verdicts ({error}): ignored")
        return ()
    proofs = read_proofs(store, [report.claim for report, _ in pairs])
    return tuple((with_proof(report, proofs), metadata) for report, metadata in pairs)
