import json

import numpy as np
import pytest

from attlas._files.plain_file import Damaged
from attlas._files.sealed_json import SEAL, sealed, unsealed

DOCUMENT = {"schema": 2, "share": 0.1 + 0.2, "names": ["é", None], "parts": {"b": 1, "a": [True]}}


def test_what_was_written_is_read_in_any_order_and_layout():
    text = json.dumps(dict(reversed(sealed(DOCUMENT).items())), indent=3)
    assert unsealed(json.loads(text)) == DOCUMENT


def test_every_flipped_bit_changes_nothing_or_is_noticed():
    content, noticed = json.dumps(sealed(DOCUMENT)).encode(), 0
    for place in np.ndindex(len(content), 8):
        changed = bytearray(content)
        changed[place[0]] ^= 1 << place[1]
        try:
            assert unsealed(json.loads(changed.decode())) == DOCUMENT
        except (ValueError, AttributeError, Damaged):
            noticed += 1
    assert noticed > 0.9 * 8 * len(content)


def test_a_document_without_a_seal_is_refused():
    with pytest.raises(Damaged, match="its seal does not fit"):
        unsealed(DOCUMENT)
    with pytest.raises(Damaged):
        unsealed({**DOCUMENT, SEAL: None})
