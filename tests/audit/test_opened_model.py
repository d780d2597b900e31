"""Which way reads a model, and what is said where neither does."""

import importlib.util

import pytest

from attlas.audit import opened_model
from attlas.audit.opened_model import opened
from attlas.core.errors import UserError


def test_without_pytorch_the_refusal_says_how_to_capture(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"model_type": "olmo2"}')
    monkeypatch.setattr(opened_model, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"or run it in PyTorch: pip install '\.\[torch\]'"):
        opened(tmp_path)
    with pytest.raises(UserError, match="PyTorch, which is not installed"):
        opened(tmp_path, capture=True)


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="attlas[torch] is not installed")
def test_both_reasons_are_said(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "mine"}')
    with pytest.raises(UserError, match="; and capture by PyTorch: "):
        opened(tmp_path)
