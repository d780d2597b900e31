"""What is captured of every model is what transformers computes, and its matrices explain it."""

import numpy as np
import pytest
from captured_models import MODELS, library, random_model
from reference_transformers import float32_read_as_float64

torch, transformers = library()

from attlas.capture.canonical_heads import canonical_attention, logit_residual  # noqa: E402
from attlas.capture.captured_heads import captured_heads  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.capture.linear_maps import array_of  # noqa: E402

REFUSED = {"longformer"}
"""Of these the attention is no map of all tokens: an audit names what it needs."""
NO_LOGITS = {"bloom", "mpt", "falcon with alibi", "mpnet", "deberta", "deberta-v2", "t5"}
NO_LOGITS |= {"deepseek_v2", "deepseek_v3", "olmo2", "olmo3", "olmoe", "bitnet"}
"""Of these the logits are more than a product of rotated linear maps of one norm's output."""
EXACT, TABLES = 1e-10, 1e-6
"""Where a model keeps its sines in float32, its own numbers are off by the second."""


def captured(model):
    """Maps, recognised heads, residuals of the logits, and the output of a run."""
    maps, heads, residuals = [], [], []

    def read(each):
        layer = captured_heads(each, model.tolerance, model.softcap)
        heads.append(layer)
        if layer is None:
            return
        maps.append(array_of(each.seen.weights))
        attention = canonical_attention(layer)
        if attention is not None and not layer.biased:
            logits, allowed = array_of(each.seen.logits)[0], each.seen.allowed.numpy()[0]
            residuals.append(logit_residual(attention, layer.query.x[0], logits, allowed))

    inputs = model.probes(np.random.default_rng(0), 3, 9)
    output = model.run(inputs, read)
    return inputs, output, maps, heads, residuals


def returned_maps(output):
    """The maps that the library returns, in the order in which they are computed."""
    if hasattr(output, "text_model_output"):
        sides = output.vision_model_output, output.text_model_output
        return [each for side in sides for each in side.attentions or ()]
    if getattr(output, "encoder_attentions", None) is not None:
        decoder = zip(output.decoder_attentions, output.cross_attentions, strict=True)
        return [*output.encoder_attentions, *(each for pair in decoder for each in pair)]
    return list(output.attentions)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_a_captured_model_is_the_one_that_the_library_runs(name):
    model = captured_module(random_model(name), name, mask=3)
    inputs, output, maps, heads, residuals = captured(model)
    if name in REFUSED:
        assert maps == []
        assert all(layer is None for layer in heads)
        return
    with torch.no_grad(), float32_read_as_float64(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        expected = model.module(**inputs, output_attentions=True)
        torch.set_default_dtype(before)
    first = [getattr(each, "logits", None) for each in (output, expected)]
    if first[0] is not None:
        np.testing.assert_allclose(first[0], first[1], rtol=EXACT, atol=EXACT)
    theirs = [array_of(each) for each in returned_maps(expected)]
    if theirs:
        assert len(theirs) == len(maps)
        if name == "clip":
            maps = sorted(maps, key=lambda each: -each.shape[-1])
            theirs = sorted(theirs, key=lambda each: -each.shape[-1])
        for ours, other in zip(maps, theirs, strict=True):
            np.testing.assert_allclose(ours, other, rtol=0, atol=EXACT)
    if name != "bitnet":  # whose context is normalised before the output projection
        assert max(layer.residual for layer in heads) <= EXACT
    if name not in NO_LOGITS:
        assert residuals
        assert max(residuals) <= (TABLES if name in {"gptj", "codegen"} else EXACT)


def test_the_list_is_as_long_as_is_said():
    """Of 65 at least 60 are audited, and the others refused."""
    assert len(MODELS) - len(REFUSED) >= 65
