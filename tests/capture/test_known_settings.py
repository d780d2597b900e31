"""Keys of a configuration that transformers would store and not use are refused by name."""

import json

import pytest
from captured_models import library, random_model

library()

from attlas.audit.opened_model import opened  # noqa: E402
from attlas.capture.model_folder import open_folder  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402

MULTIPLIERS = {"attention_multiplier": 0.01, "residual_multiplier": 0.2}
"""Granite's, under the name of another: transformers drops them without a word."""


@pytest.mark.parametrize("name", ["llama", "olmo2", "t5"])
@pytest.mark.parametrize("capture", [None, True])
def test_settings_that_nobody_knows_are_named_and_not_ignored(tmp_path, name, capture):
    """Of a type that attlas reads and of others, whichever way is asked for."""
    source = tmp_path / "model"
    random_model(name).save_pretrained(source)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | MULTIPLIERS))
    named = r"attention_multiplier = 0\.01 and residual_multiplier = 0\.2 in the configuration are"
    with pytest.raises(UserError, match=rf"{named} not known to transformers .* --ignore-settings"):
        opened(source, capture)
    assert type(opened(source, capture, ignore_settings=True)).__name__ == "CapturedModel"


def test_settings_of_older_libraries_that_change_nothing_are_no_refusal(tmp_path):
    """What a class consumes, what its code reads, and what is neutral wherever it is read."""
    source = tmp_path / "model"
    random_model("olmo2").save_pretrained(source)
    config = json.loads((source / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config |= {"torch_dtype": "float64", "position_embedding_type": "absolute", "use_cache": True}
    (source / "config.json").write_text(json.dumps(config))
    assert type(open_folder(source)).__name__ == "CapturedModel"
    (source / "config.json").write_text(json.dumps(config | {"position_embedding_type": "other"}))
    with pytest.raises(UserError, match="position_embedding_type = 'other'"):
        open_folder(source)


def test_keys_that_later_libraries_have_dropped_pass_with_the_value_that_is_computed(tmp_path):
    source = tmp_path / "model"
    random_model("bloom").save_pretrained(source)
    config = json.loads((source / "config.json").read_text())
    dropped = {"offset_alibi": 100, "skip_bias_add": True, "seq_length": 2048}
    (source / "config.json").write_text(json.dumps(config | dropped))
    assert type(open_folder(source)).__name__ == "CapturedModel"
    (source / "config.json").write_text(json.dumps(config | dropped | {"offset_alibi": 7}))
    with pytest.raises(UserError, match="offset_alibi = 7 in the configuration is not known"):
        open_folder(source)
