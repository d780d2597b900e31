import sys
import types

import pytest

from attlas.core.errors import UserError
from attlas.transformers import architecture_table as module
from attlas.transformers.architecture_table import architecture_of, architecture_table
from attlas.transformers.settings import Settings


def test_every_model_type_is_read_by_the_module_that_names_it():
    table = architecture_table()
    assert {"attlas_encoder", "attlas_translator"} <= set(table)
    for kind, each in table.items():
        assert kind in each.SETTINGS
        assert architecture_of({"model_type": kind}, "it") is each


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "it: the configuration has no 'model_type': add one of .*attlas_encoder"),
        ({"model_type": 3}, "it: model_type = 3 is not a string"),
        ({"model_type": "attlas_translater"}, "'attlas_translater' is not read; the nearest known"),
        (
            {"model_type": "attlas_translater"},
            "one is 'attlas_translator': correct",
        ),
        ({"model_type": "\x1b[2J" + "x" * 1000}, "the nearest known one is '"),
        ({"model_type": ""}, "model_type '' is not read; the nearest known one is '"),
    ],
)
def test_what_is_not_read_is_refused_with_the_nearest(config, said):
    with pytest.raises(UserError, match=said) as refused:
        architecture_of(config, "it")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("kind", "nearest"),
    [
        ("deberta-v2", {"bert", "electra", "roberta", "xlm-roberta", "camembert"}),
        ("bert-generation", {"bert", "electra", "roberta", "xlm-roberta", "camembert"}),
        ("olmo", {"llama", "mistral", "qwen3", "granite"}),
        ("stablelm", {"llama", "qwen2", "qwen3", "gpt_neox"}),
        ("gpt_bigcode", {"gpt2"}),
        ("deit", {"vit"}),
    ],
)
def test_the_nearest_is_nearest_in_architecture(kind, nearest):
    transformers = pytest.importorskip("transformers", reason="an extra of the tests")
    config = transformers.AutoConfig.for_model(kind).to_dict()
    with pytest.raises(UserError) as refused:
        architecture_of(config, "it")
    assert str(refused.value).split("nearest known one is '")[1].split("'")[0] in nearest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "lacks SETTINGS, read or fused_attention"),
        (
            {
                "SETTINGS": {"attlas_encoder": Settings()},
                "read": print,
                "fused_attention": print,
            },
            "reads 'attlas_encoder', and so does another",
        ),
    ],
)
def test_a_module_that_is_no_architecture_stops_the_scan(monkeypatch, content, said):
    name = f"{module.architectures.__name__}.zebra"
    added = types.ModuleType(name)
    vars(added).update(content)
    monkeypatch.setitem(sys.modules, name, added)
    listed = [*module.pkgutil.iter_modules(module.architectures.__path__)]
    extra = module.pkgutil.ModuleInfo(listed[0].module_finder, "zebra", False)
    monkeypatch.setattr(module.pkgutil, "iter_modules", lambda _path: [*listed, extra])
    with pytest.raises((TypeError, ValueError), match=said):
        architecture_table.__wrapped__()
