"""What `--export` cannot write is refused before an audit begins."""

import json

import pytest

from attlas.audit.exported import require_exportable
from attlas.core.errors import UserError

QUANTISED = {"model_type": "llama", "quantization_config": {"quant_method": "fp8"}}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "is not a Hugging Face folder: only these are exported"),
        ({"config.json": {"tensors_sha256": "0"}}, "is not a Hugging Face folder"),
        ({"config.json": {"dim": 64}, "a.safetensors": {}}, "no model_type, as llama2.c's"),
        ({"config.json": {"model_type": "gpt2"}}, r"has no \.safetensors files"),
        ({"adapter_config.json": {}}, "holds an adapter, .* merge it"),
        (
            {"config.json": QUANTISED, "a.safetensors": {}},
            "has quantised weights, .* dequantise it",
        ),
    ],
)
def test_a_source_that_cannot_be_written_is_refused(tmp_path, files, said):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(UserError, match=said):
        require_exportable(tmp_path)


def test_a_folder_with_its_tensors_is_not_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "model.safetensors").touch()
    require_exportable(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
