"""The pooling of a sentence encoder is the one that its folder names."""

import json

import pytest

from attlas.core.errors import UserError
from attlas.transformers.pooling import folder_pooling, longest_input


def written(folder, pooling=None, modules=()):
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if modules:
        several = [{"type": f"sentence_transformers.models.{name}"} for name in modules]
        (folder / "modules.json").write_text(json.dumps(several))
    return folder


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({}, "mean"),
    ],
)
def test_the_pooling_is_read(tmp_path, pooling, expected):
    modules = ("Transformer", "Pooling", "Normalize")
    assert folder_pooling(written(tmp_path, pooling, modules)) == expected


@pytest.mark.parametrize(
    ("pooling", "modules", "said"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, (), "only one"),
        ({"pooling_mode_weightedmean_tokens": True}, (), "asks for pooling_mode_weightedmean"),
        ({}, ("Transformer", "Pooling", "Dense"), "a module Dense behind the pooling"),
        ([], (), "is no mapping"),
    ],
)
def test_what_would_change_the_embeddings_is_refused(tmp_path, pooling, modules, said):
    with pytest.raises(UserError, match=said):
        folder_pooling(written(tmp_path, pooling, modules))


def test_the_longest_input_is_read(tmp_path):
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    assert longest_input(tmp_path) == 256
    (tmp_path / "sentence_bert_config.json").write_text("nothing")
    with pytest.raises(UserError, match="is not JSON"):
        longest_input(tmp_path)
