"""Answers of models on a text are those of the models, token by token and class by class."""

import json

import jax
import numpy as np
import pytest
from captured_models import library
from scipy import special

from attlas.audit.model_answers import class_table, token_probabilities
from attlas.audit.read_batch import default_text
from attlas.core.errors import UserError
from attlas.transformers.load_model import load_model
from attlas.transformers.tokenizer import read_tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "a", "very"]
LINES = ["a good film", "a very very bad film", "good", "bad film"]


@pytest.mark.thorough
def test_probabilities_are_those_of_one_forward_pass_per_line(data_dir):
    folder = data_dir / "stories260k"
    lines = [*default_text().splitlines()[:3], "", "Once upon a time"]
    found = token_probabilities(folder, lines, False)
    model = load_model(folder)
    tokenizer = read_tokenizer(folder, json.loads((folder / "config.json").read_text()))
    assert tokenizer.encode is not None
    wanted = []
    for line in filter(None, lines):
        tokens = np.array(tokenizer.encode(line))
        logs = jax.nn.log_softmax(model.logits(tokens), axis=-1)
        wanted += [float(np.exp(logs[k - 1, tokens[k]])) for k in range(1, tokens.size)]
    assert found.vocabulary == 512
    assert found.bytes == sum(len(line.encode()) for line in lines)
    np.testing.assert_allclose(found.probabilities, wanted, rtol=1e-4, atol=1e-9)
    assert 1 < -np.log2(found.probabilities).mean() < 6


def test_a_long_line_goes_on_without_what_was_before(data_dir):
    folder = data_dir / "stories260k"
    line = " ".join(default_text().splitlines())
    found = token_probabilities(folder, [line], False)
    starts = np.flatnonzero(found.probabilities == 1 / 512)
    assert starts.tolist() == [511, 1023]  # what begins the line is no text


def classifier(folder, causal=False):
    torch, transformers = library()
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 20, "max_position_embeddings": 8}
    names = {0: "negative", 1: "positive", 2: "neutral"}
    config = transformers.BertConfig(**sizes, id2label=names, initializer_range=1.0)
    kind = "BertForMaskedLM" if causal else "BertForSequenceClassification"
    model = getattr(transformers, kind)(config).double().eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    return model


def test_classes_are_those_of_transformers(tmp_path):
    pytest.importorskip("tokenizers", reason="the extra attlas[audit] is not installed")
    model = classifier(tmp_path)
    import torch

    table = class_table(tmp_path, LINES, ["positive", "0", "2", "neutral"])
    assert table["label"] == ["positive", "negative", "neutral", "neutral"]
    tokenizer = read_tokenizer(tmp_path, {"model_type": "bert"})
    assert tokenizer.encode is not None
    for place, line in enumerate(LINES):
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(line)[:8]])).logits[0].numpy()
        best = int(logits.argmax())
        assert table["prediction"][place] == ["negative", "positive", "neutral"][best]
        np.testing.assert_allclose(
            table["confidence"][place], special.softmax(logits)[best], rtol=1e-9
        )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["1"] * 3, "3 labels for 4 lines"),
        (
            ["1", "3", "1", "1"],
            "label '3' .number 2. is no class of the model: give negative, positive, neutral",
        ),
    ],
)
def test_bad_labels_are_one_line(tmp_path, labels, said):
    pytest.importorskip("tokenizers", reason="the extra attlas[audit] is not installed")
    classifier(tmp_path)
    with pytest.raises(UserError, match=said):
        class_table(tmp_path, LINES, labels)


def test_models_without_classes_or_next_tokens_are_refused(tmp_path):
    pytest.importorskip("tokenizers", reason="the extra attlas[audit] is not installed")
    classifier(tmp_path, causal=True)
    with pytest.raises(UserError, match="gives no logits of classes"):
        class_table(tmp_path, LINES, ["1"] * 4)
    with pytest.raises(UserError, match="does not predict the next token"):
        token_probabilities(tmp_path, LINES, True)


def test_an_empty_text_and_a_missing_tokenizer_are_refused(data_dir, tmp_path):
    with pytest.raises(UserError, match="no line that is not empty"):
        token_probabilities(data_dir / "stories260k", ["", " "], False)
    for file in ("config.json", "stories260K.safetensors"):
        (tmp_path / file).write_bytes((data_dir / "stories260k" / file).read_bytes())
    with pytest.raises(UserError, match="has no tokenizer that is read"):
        token_probabilities(tmp_path, ["a"], False)
