"""The sharpness of a captured model: own reading, dense Hessians, and what descent does."""

import jax
import numpy as np
import pytest
from captured_models import library, random_model

torch, transformers = library()

from attlas.audit.audit import AuditOptions, audit  # noqa: E402
from attlas.audit.captured.captured_ablation import CapturedLoss  # noqa: E402
from attlas.audit.captured.captured_answers import CapturedAnswers  # noqa: E402
from attlas.audit.captured.captured_sharpness import captured_sharpness  # noqa: E402
from attlas.audit.captured.captured_step import captured_descent  # noqa: E402
from attlas.audit.deep_level.rate_decision import STEPS  # noqa: E402
from attlas.audit.deep_level.sharpness import model_sharpness  # noqa: E402
from attlas.audit.opened_model import opened  # noqa: E402
from attlas.audit.sequence_loss import judged_batch  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402

OPTIONS = AuditOptions(curvature=False, special=(1,), context=16, learning_rate=0.4, momentum=0.5)
STEP = ("learning_rate", "optimizer", "momentum", "threshold", "threshold_formula")
SIZES = {"vocab_size": 11, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def stirred(model):
    """A model in float64 none of whose weights is zero."""
    model = model.double().eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=draw, dtype=weights.dtype))
    return model


def gpt2(width=4, kind="GPT2LMHeadModel"):
    config = transformers.GPT2Config(
        n_embd=width, n_layer=1, n_head=2, n_positions=8, n_inner=6, num_labels=3, **SIZES
    )
    config._attn_implementation = "eager"
    return stirred(getattr(transformers, kind)(config))


def encoder(kind):
    config = transformers.BertConfig(
        hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=5,
        max_position_embeddings=8, type_vocab_size=1, num_labels=3, **SIZES,
    )  # fmt: skip
    return stirred(getattr(transformers, kind)(config))


def rows(number=8, length=7):
    return list(np.random.default_rng(1).integers(1, 11, size=(number, length)))


def dense_largest(model, loss_of):
    """The largest eigenvalue of the dense Hessian in the weights that require a gradient."""
    weights = {n: w.detach() for n, w in model.named_parameters() if w.requires_grad}
    sizes = [value.numel() for value in weights.values()]

    def loss(flat):
        pieces = flat.split(sizes)
        named = {n: piece.view_as(v) for (n, v), piece in zip(weights.items(), pieces, strict=True)}
        return loss_of(
            lambda ids: torch.func.functional_call(model, named, kwargs={"input_ids": ids})
        )

    flat = torch.cat([value.flatten() for value in weights.values()])
    return float(torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, flat))[-1])


def next_tokens(ids):
    def loss(call):
        logs = call(ids).logits[:, :-1].log_softmax(-1)
        return -logs.gather(-1, ids[:, 1:, None]).mean()

    return loss


def is_enclosed(measured, largest):
    np.testing.assert_allclose(measured.sharpness, largest, rtol=1e-8)
    assert measured.step_times_sharpness == pytest.approx(0.5 * largest)
    return measured.sharpness_low <= largest <= measured.sharpness_high


def test_it_is_the_largest_eigenvalue_of_the_dense_hessian():
    """Sequences of two lengths are two batches; a tied head counts once."""
    model = gpt2()
    ids = torch.as_tensor(np.stack(rows()))
    measured = captured_sharpness(CapturedLoss(captured_module(model), rows(), ()), 0.5)
    assert is_enclosed(measured, dense_largest(model, next_tokens(ids)))
    short = [*rows(3), *rows(2, 4)]

    def both(call):
        parts = [
            next_tokens(torch.as_tensor(np.stack(part)))(call) for part in (short[:3], short[3:])
        ]
        return (3 * parts[0] + 2 * parts[1]) / 5

    mixed = captured_sharpness(CapturedLoss(captured_module(model), short, ()), 0.5)
    assert is_enclosed(mixed, dense_largest(model, both))


def test_frozen_weights_do_not_count():
    model = gpt2()
    model.transformer.wte.requires_grad_(requires_grad=False)
    measured = captured_sharpness(CapturedLoss(captured_module(model), rows(), ()), 0.5)
    assert is_enclosed(
        measured, dense_largest(model, next_tokens(torch.as_tensor(np.stack(rows()))))
    )


@pytest.mark.parametrize("kind", ["labels", "documents"])
def test_the_loss_of_right_answers_has_its_own_hessian(kind):
    texts, documents = rows(4), rows(3, 5)
    ids, others = (torch.as_tensor(np.stack(part)) for part in (texts, documents))
    right = np.array([2, 0, 1, 2])
    answers = torch.as_tensor(right)
    if kind == "labels":
        model = encoder("BertForSequenceClassification")
        loss = CapturedAnswers(captured_module(model), texts, right)

        def of_answers(call):
            return torch.nn.functional.cross_entropy(call(ids).logits, answers)
    else:
        model = encoder("BertModel")
        loss = CapturedAnswers(captured_module(model).without_head(), texts, right, documents)

        def of_answers(call):
            states = [call(part).last_hidden_state.mean(1) for part in (ids, others)]
            one, two = (torch.nn.functional.normalize(state, dim=1) for state in states)
            return torch.nn.functional.cross_entropy(20 * one @ two.T, answers)

    assert is_enclosed(captured_sharpness(loss, 0.5), dense_largest(model, of_answers))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_both_ways_say_the_same(name):
    """More weights than a dense Hessian is made of: Lanczos in PyTorch and in JAX."""
    model, tokens = stirred(random_model(name)), rows()
    with jax.enable_x64(True):
        read = opened(model, False)
        ours = model_sharpness(read, judged_batch(read, tokens), 0.5)
    theirs = captured_sharpness(CapturedLoss(captured_module(model), tokens, ()), 0.5)
    np.testing.assert_allclose(theirs.sharpness, ours.sharpness, rtol=1e-6)
    assert theirs.sharpness_high / theirs.sharpness_low < 1.02


@pytest.mark.thorough
def test_an_audit_has_the_finding_facts_and_words_of_own_reading():
    model = gpt2()
    before = [weights.detach().clone() for weights in model.parameters()]
    with jax.enable_x64(True):
        ours = audit(model, rows(), level="deep", capture=False, options=OPTIONS)
    theirs = audit(model, rows(), level="deep", capture=True, options=OPTIONS)
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    one, two = (
        next(each for each in report.decisions if each.kind == "step") for report in (ours, theirs)
    )
    assert two.action == one.action
    assert two.advised == one.advised
    ending = " / sharpness = "
    assert two.what.split(ending)[0] == one.what.split(ending)[0]
    assert two.meaning == one.meaning
    for number in ("loss", "change", "low", "high"):
        np.testing.assert_allclose(getattr(two, number), getattr(one, number), rtol=1e-6)
    named = [name for name in ours.facts if "sharpness" in name or name in STEP]
    assert set(named) <= set(theirs.facts)
    assert theirs.facts["sharpness"] == pytest.approx(ours.facts["sharpness"], rel=1e-6)
    assert theirs.facts["sharpness_sequences"] == 4
    assert any("times the sharpness" in note for note in theirs.notes)
    assert set(two.to_json()) == set(one.to_json())


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["labels", "documents", "unchanged"])
def test_audits_by_right_answers_and_by_comparison_have_it_too(kind):
    model = encoder("BertForSequenceClassification" if kind == "labels" else "BertModel")
    more = {"labels": {"labels": np.arange(8) % 3}, "documents": {"documents": rows(8, 5)}}
    report = audit(model, rows(), level="deep", capture=True, options=OPTIONS, **more.get(kind, {}))
    steps = [each for each in report.decisions if each.kind == "step"]
    if kind == "unchanged":
        assert not steps
        assert any("not the one of the training" in note for note in report.notes)
        return
    (step,) = steps
    examples = {"labels": "texts", "documents": "queries"}[kind]
    assert f"8 steps of gradient descent on 4 {examples} take their loss" in step.meaning
    assert step.accuracy is not None
    others = [each for each in report.decisions if each.kind != "step"]
    assert all(each.accuracy.before == step.accuracy.before for each in others)
    np.testing.assert_allclose([each.loss for each in others], step.loss)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_pytorch(momentum):
    model = gpt2()
    ids = torch.as_tensor(np.stack(rows()))
    loss = CapturedLoss(captured_module(model), rows(), ())
    start = [weights.detach().clone() for weights in model.parameters()]
    path = captured_descent(loss, 0.02, momentum)
    assert all(torch.equal(old, new) for old, new in zip(start, model.parameters(), strict=True))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=momentum)
    losses = []
    for _ in range(STEPS + 1):
        optimizer.zero_grad()
        value = next_tokens(ids)(lambda part: model(input_ids=part))
        losses.append(value.item())
        value.backward()
        if len(losses) <= STEPS:
            optimizer.step()
    np.testing.assert_allclose(path.losses, losses, rtol=1e-10)
    for reached, weights in zip(path.weights, model.parameters(), strict=True):
        torch.testing.assert_close(reached, weights.detach())


class Once(torch.autograd.Function):
    """A product with 2 that can be differentiated once."""

    @staticmethod
    def forward(ctx, values):
        return 2 * values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slopes):
        return 2 * slopes


class Never(Once):
    """The same, whose backward pass refuses to be differentiated."""

    @staticmethod
    def backward(ctx, slopes):
        if torch.is_grad_enabled():
            raise NotImplementedError("the derivative of this kernel is not made")
        return 2 * slopes


class Doubled(torch.nn.Module):
    function = Once

    def forward(self, values):
        return self.function.apply(values)


def test_what_has_no_second_derivative_or_no_trained_weight_is_one_line():
    model = gpt2()
    model.transformer.ln_f = torch.nn.Sequential(model.transformer.ln_f, Doubled())
    with pytest.raises(UserError, match=r"GPT2.* are not symmetric \(.*: an operation hid"):
        captured_sharpness(CapturedLoss(captured_module(model), rows(), ()), 0.5)
    model.transformer.ln_f[1].function = Never
    with pytest.raises(UserError, match=r"no second derivatives of the loss of GPT2.*not made"):
        captured_sharpness(CapturedLoss(captured_module(model), rows(), ()), 0.5)
    frozen = gpt2().requires_grad_(requires_grad=False)
    with pytest.raises(UserError, match=r"requires a gradient.*or leave the learning rate out"):
        captured_sharpness(CapturedLoss(captured_module(frozen), rows(), ()), 0.5)


def test_vectors_that_do_not_fit_in_memory_are_refused(monkeypatch):
    name = "attlas.audit.captured.captured_sharpness._BYTES"
    monkeypatch.setattr(name, 16 * 10 * 300)
    with pytest.raises(UserError, match="needs more than 48,000 bytes: let fewer weights"):
        captured_sharpness(CapturedLoss(captured_module(gpt2()), rows(), ()), 0.5)


@pytest.mark.parametrize("factor", [0.05, 200.0])
def test_far_below_the_limit_is_kept_and_far_beyond_is_lowered(factor):
    from attlas.audit.captured.captured_step import captured_step

    loss = CapturedLoss(captured_module(gpt2()), rows(), ())
    few = loss.of(loss.model, np.arange(0, 8, 2))
    rate = factor * 2 / captured_sharpness(few, 1.0).sharpness
    (decision,), facts = captured_step(loss, AuditOptions(learning_rate=rate))
    side = "below" if factor < 1 else "beyond"
    assert f"is {side} 2 (1 + momentum) / sharpness = " in decision.what
    assert decision.action.startswith("Keep it" if factor < 1 else "Train with ")
    assert facts["step_times_sharpness"] == pytest.approx(2 * factor)
