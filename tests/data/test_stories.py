import dataclasses
import json

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data import stories
from attlas.data.sources import content_manifest, read_verified


def _write(folder, dtype):
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    header = {"w": {"dtype": dtype, "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {}}
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + array.tobytes()
    (folder / "stories260K.safetensors").write_bytes(content)
    return array


def test_weights_are_read(tmp_path, monkeypatch):
    folder = tmp_path / "stories260k"
    folder.mkdir()
    array = _write(folder, "F32")
    (folder / "tok512_vocab.json").write_text('["a", "b"]')
    (folder / "config.json").write_text('{"dim": 64}')
    manifest = content_manifest(stories.STORIES.canonical(stories.STORIES.read(folder)))
    own = dataclasses.replace(stories.STORIES, manifest=manifest)
    monkeypatch.setattr(stories, "STORIES", own)
    found = stories.load_stories(tmp_path)
    assert np.array_equal(found.weights["w"], array)
    assert found.vocabulary == ["a", "b"]
    _write(folder, "BF16")
    with pytest.raises(UserError, match="w is BF16, not F32"):
        read_verified(own, tmp_path)
