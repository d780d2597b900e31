"""Every kind of model with every input: an audit, or a refusal in one line."""

import numpy as np
import pytest
from captured_models import library, random_model, random_tokens
from reference_transformers import float32_read_as_float64

torch, _ = library()

from attlas.audit.audit import audit  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.capture.captured_run import run_captured, run_changed  # noqa: E402
from attlas.capture.linear_maps import read_norm  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402

TOKENS = list(random_tokens(4))
IMAGES = list(np.random.default_rng(0).normal(size=(4, 3, 12, 12)))
INPUTS = {
    "none": {},
    "tokens": {"sequences": TOKENS},
    "images": {"sequences": IMAGES},
    "labels": {"sequences": TOKENS, "labels": [0, 1, 0, 1]},
    "documents": {"sequences": TOKENS, "documents": TOKENS},
}
NAMES = ("bert", "clip", "gpt_oss", "longformer", "mpnet", "t5", "vit", "wav2vec2", "whisper")
"""One of each kind of input and output."""
READS = {"whisper": "input_features", "wav2vec2": "input_values", "vit": "pixel_values"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_model_is_audited_or_refused_in_one_line(name):
    model, answers = random_model(name), {}
    for what, given in INPUTS.items():
        try:
            audit(model, capture=True, **given)
        except UserError as refusal:
            answers[what] = str(refusal)
            assert "\n" not in answers[what]
    if name == "longformer":
        assert len(answers) == len(INPUTS)
        return
    assert "none" not in answers
    if name in READS:
        assert f"reads {READS[name]}, not sequences of tokens" in answers["tokens"]
    else:
        assert "tokens" not in answers
        assert "documents" not in answers


def test_of_a_model_of_images_and_texts_the_part_that_reads_the_sequences_is_audited():
    model = random_model("clip")
    texts, images = audit(model, TOKENS), audit(captured_module(model).image_tower(), IMAGES)
    assert (texts.model["words"], images.model["words"]) == (60, 0)
    assert texts.model["parameters"] < sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_the_embedding_of_an_encoder_with_a_decoder_is_the_encoders(name):
    module = random_model(name)
    encoder = captured_module(module).without_head()
    tokens = random_tokens(2)
    output = encoder.run_with(encoder.inputs(tokens), lambda number, seen: None)
    with float32_read_as_float64(torch):
        expected = module.get_encoder()(torch.as_tensor(tokens)).last_hidden_state.mean(1)
    np.testing.assert_allclose(encoder.pooled(output), expected.detach(), rtol=1e-9, atol=1e-9)


class Failing(torch.nn.Linear):
    """A model whose own code fails."""

    def forward(self, x):
        """Read what is not there."""
        return x.nothing


def test_only_what_the_model_itself_raises_is_a_refusal():
    inputs = {"x": torch.ones(2, 3, 4)}
    with pytest.raises(UserError, match=r"Failing fails on x of shape \(2, 3, 4\) \(Attribute"):
        run_captured(Failing(4, 4), inputs, lambda each: None)

    class Attending(torch.nn.Linear):
        def forward(self, x):
            return (x @ x.transpose(1, 2)).softmax(-1) @ x

    def own(*_):
        raise KeyError("a fault of attlas")

    with pytest.raises(KeyError, match="a fault of attlas"):
        run_changed(Attending(4, 4), inputs, own)


def test_a_norm_that_was_called_with_no_row_is_passed_over():
    from attlas.capture.captured_run import Call

    none = torch.ones(0, 4, dtype=torch.float64)
    assert read_norm(Call("", torch.nn.LayerNorm(4).double(), none, none), 1e-9) is None
