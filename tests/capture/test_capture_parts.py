"""The parts of a capture by themselves: the trace, the run, columns, norms and rotations."""

import jax.numpy as jnp
import numpy as np
import pytest
from captured_models import library, random_model, random_tokens

torch, _ = library()

from attlas.capture.captured_run import Call, run_captured, run_changed  # noqa: E402
from attlas.capture.linear_maps import linear_map, matching_columns, read_norm  # noqa: E402
from attlas.capture.replaced_context import replaced_context  # noqa: E402
from attlas.capture.rotation_fit import fitted_rotation  # noqa: E402
from attlas.torch.attention_trace import AttentionTrace, shaped  # noqa: E402


def test_a_product_with_a_parameter_or_without_a_softmax_is_no_attention():
    seen = []
    x, weight = torch.randn(2, 4, 5, 3), torch.nn.Parameter(torch.randn(2, 4, 3, 5))
    with AttentionTrace(seen.append), torch.no_grad():
        _ = (x @ weight).softmax(-1) @ x
        _ = (x @ x.transpose(-1, -2)) @ x
    assert seen == []


def test_heads_inside_the_batch_axis_and_a_sink_are_taken_apart():
    seen = []
    x = torch.randn(6, 5, 3, dtype=torch.float64)
    with AttentionTrace(seen.append):
        logits = torch.baddbmm(torch.ones(6, 5, 5).double(), x, x.transpose(1, 2))
        with_sink = torch.cat([logits, torch.zeros(6, 5, 1).double()], -1).softmax(-1)
        context = torch.bmm(torch.nn.functional.dropout(with_sink[..., :-1], 0.1, False), x)
    whole = shaped(seen[0], 2)
    assert whole.weights.shape == whole.logits.shape == (2, 3, 5, 5)
    torch.testing.assert_close(whole.context.flatten(0, 1), context)
    assert (whole.weights.sum(-1) < 1).all()


def test_the_scale_is_what_the_product_is_multiplied_by():
    def times(product, x):
        return 3 * product / torch.tensor(2.0) + torch.ones(5, 5)

    def in_place(product, x):
        product /= 4
        product *= torch.arange(5.0)  # an array is no scale
        return 10 * torch.tanh(product / 10)

    def of_sums(product, x):
        return torch.baddbmm(product[0] * 0, x[0], x[0].transpose(1, 2), alpha=0.3)

    def written(product, x):
        target = torch.zeros_like(product)
        target[:] = product * 5
        return target

    x = torch.randn(2, 4, 5, 3)
    for code, scale in ((times, 1.5), (in_place, 0.25), (of_sums, 0.3), (written, 5.0)):
        seen = []
        with AttentionTrace(seen.append):
            logits = code(x @ x.transpose(-1, -2), x)
            logits.softmax(-1) @ (x if logits.dim() == 4 else x[0])
        assert [each.scale for each in seen] == [pytest.approx(scale)], code.__name__


def test_what_a_callback_returns_stands_in_place_of_the_context():
    x = torch.randn(1, 2, 4, 3)
    with AttentionTrace(lambda seen: torch.zeros_like(seen.context)):
        assert not (x @ x.transpose(-1, -2)).softmax(-1).matmul(x).any()


def test_a_run_leaves_the_model_as_it_was_and_computes_the_same():
    model = random_model("gpt_neox")
    ids = {"input_ids": torch.as_tensor(random_tokens())}
    calls = []
    result = run_captured(model, ids, calls.append, wide=True).logits
    assert [call.output.name[-5:] for call in calls] == ["dense", "dense"]
    torch.testing.assert_close(run_changed(model, ids, lambda n, seen: None, wide=True)[0], result)
    assert torch.get_default_dtype() == torch.float32
    assert not any(module._forward_hooks for module in model.modules())


def test_columns_of_a_fused_and_permuted_projection_are_recognised():
    draw = np.random.default_rng(0)
    offered = draw.normal(size=(20, 9))
    order = draw.permutation(9)[:4]
    match = matching_columns(0.5 * offered[:, order], offered, 1e-9)
    assert match.columns.tolist() == order.tolist()
    assert match.factor == pytest.approx(0.5)
    assert not match.shift.any()
    assert matching_columns(draw.normal(size=(20, 2)), offered, 1e-9) is None
    mixed = offered[:, :2] * np.array([1.0, 2.0])
    assert matching_columns(mixed, offered, 1e-9) is None


@pytest.mark.parametrize("centred", [True, False])
def test_a_norm_is_what_its_numbers_say(centred):
    kind = torch.nn.LayerNorm if centred else torch.nn.RMSNorm
    module = kind(8, eps=1e-5, dtype=torch.float64)
    torch.nn.init.normal_(module.weight)
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    call = Call("", module, x, module(x).detach())
    norm = read_norm(call, 1e-9)
    assert norm is not None
    assert norm.centred is centred
    np.testing.assert_allclose(norm(jnp.asarray(x.numpy())), call.output, rtol=1e-12)
    assert read_norm(call._replace(output=call.output**2), 1e-9) is None


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_partial_rotation_is_measured(interleaved):
    draw = np.random.default_rng(1)
    x, frequencies = draw.normal(size=(3, 9, 6)), np.array([1.0, 0.03])
    angle = np.exp(1j * np.arange(9)[:, None] * frequencies)
    places = (slice(0, 4, 2), slice(1, 4, 2)) if interleaved else (slice(0, 2), slice(2, 4))
    turned = (x[..., places[0]] + 1j * x[..., places[1]]) * angle
    y = x.copy()
    y[..., places[0]], y[..., places[1]] = turned.real, turned.imag
    fitted = fitted_rotation(x, y, 1e-9)
    assert fitted is not None
    rotary, factor = fitted
    np.testing.assert_allclose(rotary.frequencies[:2], frequencies, rtol=1e-12)
    np.testing.assert_allclose(rotary.frequencies[2:], 0, atol=1e-15)
    assert rotary.interleaved is interleaved
    assert factor == pytest.approx(1)
    y[:, 4] += 0.01
    assert fitted_rotation(x, y, 1e-9) is None


def test_both_ways_of_storing_a_matrix_are_read():
    x = torch.randn(1, 4, 3)
    module = torch.nn.Linear(3, 2)
    call = Call("", module, x, module(x))
    found = linear_map(call)
    np.testing.assert_allclose(found.x @ found.W + found.b, found.y, atol=1e-6)


def test_zeros_replace_one_head_and_leave_the_others():
    seen = []
    x = torch.randn(2, 3, 5, 4)
    with AttentionTrace(seen.append):
        context = (x @ x.transpose(-1, -2)).softmax(-1) @ x
    changed = replaced_context(seen[0], [1], "zero")
    assert not changed[:, 1].any()
    torch.testing.assert_close(changed[:, ::2], context[:, ::2])
