"""PAC-Bayes bounds of torch losses and Hugging Face models, beside the same losses in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

import attlas as at  # noqa: E402
from attlas.bounds.comparison.evaluation import Evaluation, evaluate  # noqa: E402
from attlas.bounds.comparison.transformer_weights import (  # noqa: E402
    Head,
    TransformerWeights,
    read_weights,
)
from attlas.bounds.generalisation.gaussian_weights import (  # noqa: E402
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.monte_carlo_losses import monte_carlo_losses  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402

KEY = jax.random.key(3)
X = np.random.default_rng(0).normal(size=(400, 3))
SMALL = {"W": [[2.0, 0.1, 0.0]], "b": [0.1]}


def tensors(dtype):
    return {name: torch.tensor(array, dtype=dtype) for name, array in SMALL.items()}


def errors_of_tensors(weights):
    inputs = torch.tensor(X, dtype=weights["W"].dtype)
    guess = inputs @ weights["W"][0] + weights["b"] > 0
    return (guess != (inputs[:, 0] > 0)).to(weights["W"].dtype).mean()


def errors_of_arrays(weights):
    inputs = jnp.asarray(X, weights["W"].dtype)
    guess = inputs @ weights["W"][0] + weights["b"] > 0
    return jnp.mean(guess != (inputs[:, 0] > 0), dtype=weights["W"].dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loss_of_torch_has_the_losses_of_the_same_loss_in_jax(dtype):
    with jax.enable_x64(dtype == "float64"):
        arrays = {name: jnp.asarray(array, dtype) for name, array in SMALL.items()}
        mine = GaussianWeights(tensors(getattr(torch, dtype)), 0.3)
        losses = monte_carlo_losses(errors_of_tensors, mine, KEY, 50)
        other = monte_carlo_losses(errors_of_arrays, GaussianWeights(arrays, 0.3), KEY, 50)
    assert losses.dtype == np.dtype(dtype)
    assert len(set(losses.tolist())) > 10
    np.testing.assert_allclose(losses, other, atol=1 / 400 + 1e-6)  # a sign at 0 may round
    assert np.mean(np.abs(losses - other) < 1e-6) > 0.9


@pytest.mark.parametrize("number", [lambda loss: loss, lambda loss: loss.item()])
def test_a_number_of_python_is_as_exact_as_the_tensors_were(number):
    law = GaussianWeights(tensors(torch.float32), 0.3)
    losses = monte_carlo_losses(lambda w: number(errors_of_tensors(w)), law, KEY, 5)
    assert losses.dtype == np.float32


def test_the_bound_of_a_hugging_face_model_is_that_of_its_drawn_losses():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        vocab_size=20, max_position_embeddings=8,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config).eval()
    ids = torch.randint(0, 20, (60, 5))
    labels = model(ids).logits.argmax(1)

    def loss(weights):
        logits = torch.func.functional_call(model, weights, (ids,)).logits
        return (logits.argmax(1) != labels).double().mean()

    start = GaussianPrior(model, [0.001, 0.1])
    with torch.no_grad():
        bound = at.pac_bayes_kl(loss, GaussianWeights(model, 0.001), start, 60, 0.05, KEY, draws=20)
        drawn = monte_carlo_losses(loss, GaussianWeights(model, 0.001), KEY, 20)
    assert 0 < bound.empirical == drawn.mean(dtype=float) < 0.3
    nats = gaussian_kl(GaussianWeights(model, 0.001), start)
    assert bound.complexity == nats.min() < 0.2 < nats.max()
    assert bound.bound < 0.6


@pytest.mark.parametrize(
    ("loss", "mean", "message"),
    [
        (lambda w: float(np.mean(np.asarray(w["b"]))), SMALL, "cannot be traced by JAX"),
        (lambda w: (torch.ones(1) * w["b"]).mean(), SMALL, "cannot be traced by JAX"),
        (torch.nn.CrossEntropyLoss(), SMALL, "cannot be traced by JAX"),
        (lambda w: w["W"], tensors(torch.float32), "must return one"),
        (lambda w: 0.0, {"W": torch.ones(2), "n": torch.tensor([1])}, "torch.int64"),
        (lambda w: 0.0, {"W": torch.ones(2), "n": np.ones(2)}, "mixes tensors"),
    ],
)
def test_a_loss_that_fits_no_weights_is_refused_in_one_line(loss, mean, message):
    mean = {k: np.asarray(v) if isinstance(v, list) else v for k, v in mean.items()}
    with pytest.raises(UserError, match=message) as refused:
        monte_carlo_losses(loss, GaussianWeights(mean, 0.1), KEY, 3)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).state_dict(), "x"])
def test_a_model_that_is_not_heads_alone_is_refused_in_one_line(model):
    with pytest.raises(UserError, match="give TransformerWeights, heads alone"):
        read_weights(model)  # as compare_bounds does first


def test_an_evaluation_takes_labels_of_torch_and_refuses_a_module():
    weights = TransformerWeights(((Head(*[np.eye(2)] * 3),),), np.ones(2))
    inputs, labels = torch.tensor([[[1.0, 0.0]], [[0.0, -1.0]]]), torch.tensor([1, -1])

    def sign(weights, X):
        return torch.sign(torch.tensor(X[:, 0]) @ torch.tensor(np.float32(weights.readout)))

    table = evaluate(weights, Evaluation(sign, (inputs, labels)), 2, 0.1)
    assert table.training_risk == 0
    with pytest.raises(UserError, match=r"predict is a torch\.nn\.Module"):
        evaluate(weights, Evaluation(torch.nn.Linear(2, 2), (inputs, labels)), 2, 0.1)
