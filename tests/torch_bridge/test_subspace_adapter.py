"""A classifier trained in a subspace: its weights, its file, and its certificate."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit  # noqa: E402
from attlas.bounds.generalisation.occam_code import decode, encode  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402
from attlas.torch import SubspaceAdapter  # noqa: E402
from attlas.torch.random_subspace import random_subspace  # noqa: E402

SQUARE = b"\x80" + encode([[[1.0]]], 1)
cross_entropy = torch.nn.functional.cross_entropy


def network(seed=0, inputs=10, width=8):
    """Two layers, from a seed."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, width), torch.nn.Tanh(), torch.nn.Linear(width, 2)
    )


def examples(n, inputs=10, seed=0, *, is_random=False):
    draw = torch.Generator().manual_seed(seed)
    X = torch.randn(n, inputs, generator=draw)
    labels = torch.randint(0, 2, (n,), generator=draw) if is_random else (X[:, 0] > 0).long()
    return X, labels


def train(adapter, X, y, steps=60, rate=0.2):
    optimizer = torch.optim.Adam([adapter.coordinates], rate)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(adapter(X), y).backward()
        optimizer.step()
    return adapter


def test_moved_weights_are_those_of_the_dense_matrix():
    """The matrix P is built entry by entry, and the weights are written into a copy."""
    start, copy = network(), network()
    start[0].bias.requires_grad_(False)
    adapter = SubspaceAdapter(start, 7, seed=4)
    z = torch.linspace(-2, 3, 7)
    with torch.no_grad():
        adapter.coordinates.copy_(z)
    moving = [start[0].weight, start[2].weight, start[2].bias]
    sizes = [weights.numel() for weights in moving]
    places, signs = random_subspace(sum(sizes), 7, 4)
    P = np.zeros((sum(sizes), 7))
    for j, (place, sign) in enumerate(zip(places, signs, strict=True)):
        tensor = 0 if j < sizes[0] else 1 if j < sizes[0] + sizes[1] else 2
        P[j, place] = sign / math.sqrt(sizes[tensor])
    change = torch.tensor(P @ z.double().numpy()).float().split(sizes)
    with torch.no_grad():
        for k, part in zip((0, 2, 3), change, strict=True):
            weights = list(copy.parameters())[k]
            weights += part.view_as(weights)
    X, y = examples(20)
    torch.testing.assert_close(adapter(X), copy(X), rtol=1e-5, atol=1e-5)
    cross_entropy(adapter(X), y).backward()
    cross_entropy(copy(X), y).backward()
    gradients = [list(copy.parameters())[k].grad.flatten() for k in (0, 2, 3)]
    expected = torch.tensor(P).float().T @ torch.cat(gradients)
    torch.testing.assert_close(adapter.coordinates.grad, expected, rtol=1e-4, atol=1e-6)


def test_as_many_dimensions_as_weights_reach_any_weights():
    start, goal = network(0), network(1)
    apart = [b - a for a, b in zip(start.parameters(), goal.parameters(), strict=True)]
    sizes = [part.numel() for part in apart]
    places, signs = random_subspace(sum(sizes), sum(sizes), 0)
    scaled = torch.cat([part.detach().flatten() * math.sqrt(part.numel()) for part in apart])
    adapter = SubspaceAdapter(start, sum(sizes))
    with torch.no_grad():
        adapter.coordinates[torch.tensor(places).long()] = scaled * torch.tensor(signs)
    X, _ = examples(20)
    torch.testing.assert_close(adapter(X), goal(X), rtol=1e-5, atol=1e-5)


def test_the_module_itself_is_never_written():
    start = network()
    before = [weights.detach().clone() for weights in start.parameters()]
    adapter = train(SubspaceAdapter(start, 20), *examples(50), steps=3)
    assert all(
        torch.equal(a, b) and b.requires_grad and b.grad is None
        for a, b in zip(before, start.parameters(), strict=True)
    )
    assert adapter.coordinates.abs().max() > 0


def test_a_certificate_is_about_the_model_that_its_file_decodes_to():
    X, y = examples(400)
    data = [(X[:150], y[:150]), (X[150:], y[150:])]
    adapter = train(SubspaceAdapter(network(), 30, seed=300), X, y)
    bound = adapter.certificate(data, delta=0.1)
    again = SubspaceAdapter.decoded(network(), adapter.file)
    assert again.seed == 300
    assert torch.equal(adapter(X), again(X))
    errors = int((again(X).argmax(1) != y).sum())
    assert (bound.empirical, bound.n, bound.delta) == (errors / 400, 400, 0.1)
    assert bound.bound == binomial_upper_limit(errors, 400, 0.1, 8 * len(adapter.file))
    assert bound.trivial == 0.5
    assert not bound.vacuous
    # the same file again: nothing is rounded twice
    assert adapter.certificate(data, delta=0.1).bound == bound.bound
    assert {c.text[:30] for c in bound.conditions if c.checked} == {
        "losses lie in [0, 1]",
        "the errors are those of the mo",
        "weights and buffers outside of",
    }


def test_the_rounding_is_the_best_of_those_given_and_is_read_from_the_file():
    X, y = examples(300)
    full = train(SubspaceAdapter(network(), 30), X, y).coordinates.detach().clone()

    def bound(levels):
        adapter = SubspaceAdapter(network(), 30)
        with torch.no_grad():
            adapter.coordinates.copy_(full)
        return adapter.certificate([(X, y)], levels=levels).bound, adapter.file

    single = {levels: bound((levels,)) for levels in (1, 2, 8, 100)}
    assert bound(tuple(single)) == min(single.values())
    for levels, (_, file) in single.items():
        seed, z = file[:1], decode(file[1:])[0]
        assert seed == b"\x80"
        assert len(np.unique(z)) <= 2 * levels + 1
        assert file[1:] == encode([full.numpy()], levels, nearest=True)


def test_training_can_round_already():
    X, y = examples(300)
    adapter = SubspaceAdapter(network(), 30, levels=1)
    with torch.no_grad():
        adapter.coordinates.copy_(torch.linspace(-1, 1, 30))
    raw = adapter.eval()(X)
    rounded = adapter.train()(X)
    cross_entropy(rounded, y).backward()
    assert adapter.coordinates.grad.abs().min() > 0
    train(adapter, X, y)
    adapter.certificate([(X, y)])
    assert adapter.file[3:5] == bytes([128 + 1, 128 + 1])  # levels, one array
    assert len(adapter.coordinates.unique()) <= 3
    fresh = SubspaceAdapter(network(), 30)
    with torch.no_grad():
        z = torch.linspace(-1, 1, 30)
        fresh.coordinates.copy_(torch.from_numpy(decode(encode([z], 1, nearest=True))[0]))
    assert torch.equal(fresh(X), rounded)
    assert not torch.equal(raw, rounded)


def test_labels_without_a_law_are_not_certified_and_a_bound_without_bits_is_false():
    """Fair coins as labels: the risk of any classifier is one half, whatever its training error."""
    free, paid = [], []
    for seed in range(8):
        X, y = examples(60, seed=seed, is_random=True)
        adapter = train(SubspaceAdapter(network(seed), 60), X, y)
        bound = adapter.certificate([(X, y)])
        paid.append(bound.bound)
        free.append(binomial_upper_limit(round(bound.empirical * 60), 60, 0.05))
    assert all(each >= 0.5 for each in paid)
    assert sum(each < 0.5 for each in free) >= 7


@pytest.mark.parametrize("mode", ["weights", "buffers", "added"])
def test_a_module_that_changed_is_refused(mode):
    module = torch.nn.Sequential(network(), torch.nn.BatchNorm1d(2))
    adapter = SubspaceAdapter(module, 10)
    X, y = examples(40)
    named = {"weights": "'0.0.weight'", "buffers": "'1.running_mean'", "added": "'a tensor'"}
    if mode == "weights":
        with torch.no_grad():
            module[0][0].weight[0, 0] += 1e-3
    elif mode == "buffers":
        module.train()(X)
    else:
        module.register_buffer("more", torch.zeros(1))
    with pytest.raises(UserError, match=f"{named[mode]} of the module changed since the adapter"):
        adapter.certificate([(X, y)])


def test_a_batch_norm_in_evaluation_mode_is_no_change():
    module = torch.nn.Sequential(network(), torch.nn.BatchNorm1d(2))
    adapter = SubspaceAdapter(module, 10).eval()
    X, y = examples(40)
    train(adapter, X, y, steps=2)
    assert adapter.certificate([(X, y)]).n == 40


@pytest.mark.thorough
def test_lora_of_peft_moves_and_nothing_else():
    peft = pytest.importorskip("peft", reason="peft is not installed")
    settings = peft.LoraConfig(r=2, target_modules=["0", "2"])
    model = peft.get_peft_model(network(), settings)
    X, y = examples(300)
    adapter = train(SubspaceAdapter(model, 30), X, y, rate=0.5)
    assert adapter.places.numel() == 2 * (10 + 8) + 2 * (8 + 2)
    assert adapter.certificate([(X, y)]).empirical < 0.2


def test_a_model_of_transformers_takes_batches_by_name():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=3,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 20, (30, 5), generator=draw)
    labels = ids[:, 1] % 3
    data = [{"input_ids": ids[k : k + 8], "labels": labels[k : k + 8]} for k in range(0, 30, 8)]
    adapter = SubspaceAdapter(model, 50)
    bound = adapter.certificate(data)
    model.eval()
    found = model(input_ids=ids).logits.argmax(1)
    assert bound.empirical == float((found != labels).double().mean())
    assert bound.trivial == 1 - 1 / 3
    assert bound.bound < 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SubspaceAdapter(torch.nn.ReLU()), "ReLU has no parameter that requires"),
        (lambda: SubspaceAdapter(network(), 1000), "dimensions = 1000: give a whole number"),
        (lambda: SubspaceAdapter(network(), 5, seed=-1), "seed = -1"),
        (lambda: SubspaceAdapter(network(), 5, levels=0), "levels = 0"),
        (lambda: made().certificate(iter([examples(5)])), "data can be read only once"),
        (lambda: made().certificate([examples(5)], delta=1.0), "delta = 1.0"),
        (lambda: made().certificate([examples(5)], levels=(0,)), "levels = 0"),
        (lambda: made().certificate([examples(5)], probe=0), "probe = 0"),
        (lambda: made().certificate([]), "no examples"),
        (lambda: SubspaceAdapter.decoded(network(), b"\x80abc"), "give a whole file"),
        (
            lambda: SubspaceAdapter.decoded(network(), b"\x80" + encode([[[1.0]]], 1)),
            "other arrays",
        ),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(UserError, match=message):
        call()


def made():
    return SubspaceAdapter(network(), 5)


def test_coordinates_that_are_not_finite_are_refused():
    adapter = made()
    with torch.no_grad():
        adapter.coordinates[0] = torch.nan
    with pytest.raises(UserError, match="coordinates"):
        adapter.certificate([examples(5)])
