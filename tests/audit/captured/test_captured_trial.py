"""Maps that are changed in a run are those that our own forward pass has when it is changed."""

import jax
import numpy as np
import pytest
from captured_models import library, random_model, random_tokens

torch, transformers = library()

from attlas.audit.captured.captured_ablation import CapturedLoss  # noqa: E402
from attlas.audit.captured.captured_audit import recognised_heads  # noqa: E402
from attlas.audit.captured.captured_trial import CapturedTrial  # noqa: E402
from attlas.audit.deep_level.head_trial import HeadTrial  # noqa: E402
from attlas.audit.head_cosines import HeadPair  # noqa: E402
from attlas.audit.opened_model import opened  # noqa: E402
from attlas.audit.sequence_loss import judged_batch  # noqa: E402
from attlas.audit.trial import Trial  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402

SEQUENCES = list(random_tokens(4, 9))
HEADS = [(0, 1), (1, 0), (1, 3)]


def captured_trial(module):
    model = captured_module(module)
    return CapturedTrial(CapturedLoss(model, SEQUENCES, ()), recognised_heads(model, SEQUENCES))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gpt_neox", "qwen3"])
def test_both_ways_agree(name):
    """Two programs: ours in JAX, transformers' in PyTorch, of the same weights in float64."""
    module = random_model(name)
    theirs = captured_trial(module)
    assert isinstance(theirs, Trial)
    with jax.enable_x64(True):
        model = opened(module, False)
        ours = HeadTrial(model, judged_batch(model, SEQUENCES))
        pair = HeadPair(1, 0, 1, 0.0, 0.0)
        for what in (
            lambda trial: trial.hidden(HEADS, 0),
            lambda trial: trial.hidden(HEADS, 1),
            lambda trial: trial.in_type("bfloat16"),
            lambda trial: trial.sharing(pair),
        ):
            changed = what(theirs)
            np.testing.assert_allclose(changed, what(ours), rtol=1e-5)
            assert np.abs(changed - theirs.losses()).max() > 1e-5
        for mine, other in zip(ours.observed(), theirs.observed(), strict=True):
            np.testing.assert_allclose(other, mine, rtol=1e-5)
        mine, other = ours.pairs(), theirs.pairs()
    assert [pair[:3] for pair in mine] == [pair[:3] for pair in other]
    np.testing.assert_allclose([pair[3:] for pair in mine], [pair[3:] for pair in other], atol=1e-6)


@pytest.mark.parametrize("name", ["gpt2", "gpt_oss", "bert"])
def test_hiding_a_token_gives_its_weight_to_the_others_in_proportion(name):
    """A model's own sink, which is no token, takes its share of it, too."""
    model = captured_module(random_model(name))
    loss = CapturedLoss(model, SEQUENCES, ())
    trial = CapturedTrial(loss, recognised_heads(model, SEQUENCES))

    def change(number, seen):
        members = [head for layer, head in HEADS if layer == number]
        context = seen.context.clone()
        first = seen.weights[:, members, :, :1]
        rest = seen.weights[:, members].clone()
        rest[..., 0] = 0
        scaled = torch.where(rest.sum(-1, keepdim=True) > 0, rest / (1 - first), first)
        if seen.weights[:, members, 0, 1:].max() == 0:  # a causal row that sees the first alone
            scaled[..., 0, :] = seen.weights[:, members, 0]
        context[:, members] = scaled @ seen.values[:, members]
        return context

    hidden = trial.hidden(HEADS, 0)
    np.testing.assert_allclose(hidden, loss.losses_with(change, "by hand"), rtol=1e-8)
    assert np.abs(hidden - loss.losses()).max() > 1e-4
    np.testing.assert_allclose(trial.in_type("float64"), loss.losses(), rtol=1e-9, atol=1e-12)
