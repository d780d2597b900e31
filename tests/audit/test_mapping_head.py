"""RXNMapper, a real model: its head with a published function stands out without being told.

The repository maps atoms with one attention map, layer 10, head 5. An audit at level data reads
reactions and names the heads that find one distant token for each row. Attacks and sinks, which
that finding does not rest on, take the least they can here.
"""

import pytest

from attlas.audit.data_level.audit_data import audit_data
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.deep_level.intervention import intervention
from attlas.audit.findings import findings_of
from attlas.audit.read_batch import token_batch
from attlas.audit.sequence_loss import judged_batch
from attlas.transformers.load_model import load_model, open_checkpoint
from attlas.transformers.tokenizer import read_tokenizer

LEAST = {"sink_sequences": 1, "probes": 1, "svm_sequences": 1, "svm_rows": 1}
QUICK = DataSettings(**LEAST, sink_tokens=8, local_steps=1, ball_steps=1, draws=200)


@pytest.mark.thorough
def test_the_mapping_head_is_named_without_being_told(data_dir):
    folder = data_dir / "rxnmapper"
    if not folder.is_dir():
        pytest.skip(f"real data: {folder} is not a folder")
    model, words = load_model(folder), read_tokenizer(folder, open_checkpoint(folder).config)
    # Long ones as they are: in short reactions most tokens are near, and 8.5 alone stands out.
    reactions = token_batch(folder / "reactions.npz", length=256, most=16).sequences
    special = tuple(words.special)
    heads = audit_data(model, reactions, QUICK._replace(special=special)).heads
    batch = judged_batch(model, reactions[:2], mask_token=words.mask, special=special)
    findings = findings_of(heads, intervention(model, batch))
    (found,) = [each for each in findings if each.quantity == "distant_confidence"]
    named = found.sentence.removeprefix("Heads ").partition(" find ")[0].split(", ")
    assert "10.5" in named
    # Layers share their weights: it is one head, seen at most depths, and few others.
    assert len(named) <= 12
    assert {each.split(".")[1] for each in named} == {"5"}
    assert "equal weights in place of the maps" in found.effect
