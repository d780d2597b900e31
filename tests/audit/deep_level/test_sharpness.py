"""The sharpness of a whole model: against the dense Hessian, and the step that it allows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from random_transformer import random_transformer

from attlas.audit.deep_level.head_curvature import mean_loss
from attlas.audit.deep_level.sharpness import model_sharpness, trained_loss
from attlas.audit.sequence_loss import judged_batch
from attlas.core.errors import UserError
from attlas.transformers.load_model import load_model
from attlas.transformers.trained_weights import trained_weights
from attlas.transformers.whole_model import whole_model

MODEL = random_transformer(layers=1, H=1, d=3, k=2, context=8)
BATCH = judged_batch(MODEL, [np.array([1, 4, 2, 3])])


@pytest.mark.thorough
def test_it_is_the_largest_eigenvalue_of_the_dense_hessian():
    found = model_sharpness(MODEL, BATCH, 0.5, momentum=0.5)
    (trained,), held = trained_weights(whole_model(MODEL))
    flat, unravel = ravel_pytree(trained)
    data = tuple(jnp.asarray(part) for part in BATCH[1:])
    dense = jax.jit(jax.hessian(lambda vector: trained_loss(unravel(vector), held, *data)))(flat)
    largest = float(np.linalg.eigvalsh(np.asarray(dense))[-1])
    np.testing.assert_allclose(found.sharpness, largest, rtol=1e-8)
    assert found.sharpness_low <= largest <= found.sharpness_high
    np.testing.assert_allclose(found.step_times_sharpness, 0.5 * largest, rtol=1e-8)
    assert found.threshold == 3.0


def test_a_step_that_is_none_is_refused():
    with pytest.raises(UserError, match="learning_rate = 0"):
        model_sharpness(MODEL, BATCH, 0.0)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["llama", "llama, tied", "gpt2"])
def test_it_is_the_sharpness_in_the_weights_that_pytorch_trains(kind, tmp_path):
    """Frequencies and biases that are none of its weights do not count, and a tied matrix once."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if kind == "gpt2":
        config = library.GPT2Config(
            vocab_size=11, n_embd=4, n_layer=1, n_head=2, n_positions=8, n_inner=6,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
    else:
        config = library.LlamaConfig(
            vocab_size=11, hidden_size=4, intermediate_size=6, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings="tied" in kind,
            max_position_embeddings=8,
        )  # fmt: skip
    config._attn_implementation = "eager"
    model = library.AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    tokens = np.random.default_rng(0).integers(11, size=(4, 7))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    sizes = [value.numel() for value in weights.values()]
    ids = torch.as_tensor(tokens)

    def loss(flat):
        pieces = flat.split(sizes)
        named = {n: piece.view_as(v) for (n, v), piece in zip(weights.items(), pieces, strict=True)}
        output = torch.func.functional_call(model, named, kwargs={"input_ids": ids})
        logs = output.logits[:, :-1].log_softmax(-1)
        return -logs.gather(-1, ids[:, 1:, None]).mean()

    flat = torch.cat([value.flatten() for value in weights.values()])
    # Reverse over reverse: torch's forward mode gives GPT-2 a Hessian that is not symmetric.
    hessian = torch.autograd.functional.hessian(loss, flat)
    largest = float(torch.linalg.eigvalsh(hessian)[-1])
    read = load_model(tmp_path)
    (trained,), _ = trained_weights(whole_model(read))
    assert sum(leaf.size for leaf in jax.tree.leaves(trained)) == sum(sizes)
    measured = model_sharpness(read, judged_batch(read, list(tokens)), 0.5)
    np.testing.assert_allclose(measured.sharpness, largest, rtol=1e-6)
    if kind == "llama":  # the control: in all numbers of the tree it is another one
        flat, unravel = ravel_pytree(whole_model(read))
        data = tuple(jnp.asarray(part) for part in judged_batch(read, list(tokens))[1:])
        every = jax.jit(jax.hessian(lambda vector: mean_loss(unravel(vector), *data)))(flat)
        assert abs(np.linalg.eigvalsh(np.asarray(every))[-1] / largest - 1) > 1e-2
