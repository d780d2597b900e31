"""Randomly drawn models of the transformers library, and ours of the same tensors beside them.

The library computes rotary angles, RMSNorm and the softmax in float32 whatever the weights are. For
the comparison in float64 every float32 that its code names is read as float64, so that a difference
is one between two programs and not the library's rounding.
"""

import json
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from attlas.transformers.architecture_table import architecture_table

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


@dataclass
class Reference:
    """A model of the library and what it computes on one sequence.

    Attributes:
        config: as config.json holds it.
        tensors: its state dict.
        tokens: the sequence.
        logits: (T, V).
        attentions: (L, H, T, T).
        hidden: (L, T, d), what enters each layer.
        attention_inputs: (T, d) of each layer: what its attention reads.
        attention_outputs: what its attention returns.
    """

    config: dict[str, Any]
    tensors: dict[str, np.ndarray]
    tokens: np.ndarray
    logits: np.ndarray
    attentions: np.ndarray
    hidden: np.ndarray
    attention_inputs: list[np.ndarray]
    attention_outputs: list[np.ndarray]


def libraries():
    """torch and transformers, or a skip that says what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, at their import
        torch = pytest.importorskip("torch", reason="parity: torch is not installed")
        transformers = pytest.importorskip(
            "transformers", reason="parity: transformers is not installed"
        )
    transformers.logging.set_verbosity_error()
    return torch, transformers


def float32_read_as_float64(torch):
    """A mode in which the library's float32 are float64."""

    class Double(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.float:
                return args[0].double()
            args = [torch.float64 if each is torch.float32 else each for each in args]
            kwargs = {
                key: torch.float64 if each is torch.float32 else each
                for key, each in (kwargs or {}).items()
            }
            return func(*args, **kwargs)

    return Double()


def draw_weights(torch, model, seed):
    """Weights of the size of a trained model's: no map is close to uniform, no gain is 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # In float64 and rounded, so that both precisions are of one model.
            drawn = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            if weight.ndim > 1:  # experts are stacked
                narrow = min(weight.shape[-2:])
                spread = 1.0 if "emb" in name or "wte" in name else 1.6 / narrow**0.5
                weight.copy_(spread * drawn)
            else:
                weight.copy_(weight + 0.3 * drawn)


def draw_input(config, task, dtype, length, seed):
    """Tokens, or an image for a vision model."""
    draw = np.random.default_rng(seed)
    if task == "ImageClassification":
        side = config.image_size
        return draw.normal(size=(config.num_channels, side, side)).astype(dtype)
    tokens = draw.integers(2, config.vocab_size, length)
    # The positions of these pass over the second token of padding; MPNet's is always token 1.
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        padding = 1 if config.model_type == "mpnet" else config.pad_token_id
        tokens[2] = tokens[length // 2] = padding
    return tokens


def watch_attention(torch, model):
    """Lists that will hold what each layer's attention reads and returns.

    A layer's attention reads what enters the outermost module whose class is an `Attention`, and
    returns what leaves `o_proj`, or its last linear map: dropout, a residual connection or a norm
    may follow.
    """
    read, returned, outermost = [], [], ()

    def note_input(module, args, kwargs):
        rows = args[0] if args else kwargs["hidden_states"]
        read.append(rows[0].numpy())

    def note_output(module, args, found):
        returned.append(found[0].numpy())

    for name, module in model.named_modules():
        if type(module).__name__.endswith("Attention") and not name.startswith(outermost or "."):
            outermost += (f"{name}.",)
            maps = [
                each
                for each in module.modules()
                if isinstance(each, torch.nn.Linear) or type(each).__name__ == "Conv1D"
            ]
            module.register_forward_pre_hook(note_input, with_kwargs=True)
            getattr(module, "o_proj", maps[-1]).register_forward_hook(note_output)
    return read, returned


def task_of(kind, config):
    """The task whose class of the library holds everything that we read of the architecture."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    if hasattr(config, "image_size"):
        return "ImageClassification"
    return "MaskedLM" if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES else "CausalLM"


def random_reference(kind, dtype, length=9, seed=0, **settings):
    """A model of an architecture and its outputs; special tokens that nobody reads are left out.

    Args:
        kind: its model_type.
        dtype: "float32" or "float64".
        length: of the sequence.
        seed: of weights and tokens.
        settings: of the configuration.
    """
    torch, transformers = libraries()
    special = {"bos_token_id", "eos_token_id", "pad_token_id"}
    unread = dict.fromkeys(special - set(architecture_table()[kind].SETTINGS[kind].read))
    config = transformers.AutoConfig.for_model(kind, **(unread | settings))
    config._experts_implementation = "eager"
    task = task_of(kind, config)
    mode = float32_read_as_float64(torch) if dtype == "float64" else nullcontext()
    tokens = draw_input(config, task, dtype, length, seed)
    with mode, torch.no_grad():
        model = (
            getattr(transformers, f"AutoModelFor{task}")
            .from_config(config, attn_implementation="eager", dtype=getattr(torch, dtype))
            .eval()
        )
        draw_weights(torch, model, seed)
        read, returned = watch_attention(torch, model)
        found = model(torch.tensor(tokens)[None], output_attentions=True, output_hidden_states=True)
    assert found.logits.dtype == getattr(torch, dtype)
    assert len(read) == len(returned) == len(found.attentions)
    return Reference(
        config=json.loads(config.to_json_string()),
        tensors={name: tensor.numpy() for name, tensor in model.state_dict().items()},
        tokens=tokens,
        logits=found.logits[0].numpy(),
        attentions=np.stack([each[0].numpy() for each in found.attentions]),
        hidden=np.stack([each[0].numpy() for each in found.hidden_states[:-1]]),
        attention_inputs=read,
        attention_outputs=returned,
    )


def differences(reader, reference):
    """Largest differences between ours and the reference, relative to the reference's largest.

    Args:
        reader: module of an architecture.
        reference: of `random_reference`.
    """
    model = reader.read(reference.config, reference.tensors, "random")
    expected = {
        "logits": reference.logits,
        "attention": reference.attentions,
        "hidden": reference.hidden,
    }
    found = {
        "logits": model.logits(reference.tokens),
        "attention": model.attention(reference.tokens),
        "hidden": model.hidden(reference.tokens)[:-1],
    }
    for index, rows in enumerate(reference.attention_inputs):
        factor = reference.config.get("residual_multiplier", 1.0)  # what is added is multiplied
        expected[f"fused_attention {index}"] = factor * reference.attention_outputs[index]
        found[f"fused_attention {index}"] = reader.fused_attention(
            reference.config, reference.tensors, index, rows
        )
    return {
        key: float(np.abs(np.asarray(found[key]) - value).max() / np.abs(value).max())
        for key, value in expected.items()
    }


def concentration(reference):
    """Mean over rows of the largest weight, relative to uniform weights on the same tokens."""
    maps = reference.attentions[:, :, 1:]  # the first row of a causal map sees one token
    uniform = 1 / np.count_nonzero(maps, axis=-1)
    return float(maps.max(axis=-1).mean() / uniform.mean())


def as_of_an_older_release(reference, settings):
    """The reference with a configuration as it was before rules and kinds of layers had keys.

    Args:
        settings: what stood there in place of `rope_parameters` and `layer_types`.
    """
    for newer in ("rope_parameters", "layer_types"):
        reference.config.pop(newer, None)
    reference.config |= settings
    return reference
