import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.state_dict import is_module, module_config, tensors_of_state


class Settings:
    def to_dict(self):
        return {"model_type": "gpt2"}


class Module:
    config = Settings()

    def state_dict(self):
        return {"W": np.ones(2)}

    def named_parameters(self):
        return iter(self.state_dict().items())


def test_a_module_is_known_by_what_it_can_do():
    assert is_module(Module())
    assert not is_module({"W": np.ones(2)})
    assert module_config(Module()) == {"model_type": "gpt2"}
    assert module_config(Module(), {"model_type": "opt"}) == {"model_type": "opt"}
    with pytest.raises(UserError, match="a model of type dict has no configuration: give config="):
        module_config({})
    with pytest.raises(UserError, match="has no configuration"):
        module_config(Module(), "gpt2")


def test_arrays_of_numpy_and_jax_are_read():
    state = {"a": np.ones(2, "f2"), "b": jnp.ones(3, jnp.bfloat16), "ids": np.arange(4)}
    tensors = LazyTensors(tensors_of_state({**state, "mask": np.ones(2, bool)}, "it"))
    assert tensors.dtype == np.float32
    assert {name: array.dtype.name for name, array in tensors.items()} == {
        "a": "float32",
        "b": "float32",
        "ids": "int64",
        "mask": "bool",
    }


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module."])
def test_prefixes_of_wrappers_are_dropped(prefix):
    state = {f"{prefix}h.0.W": np.ones(2), f"{prefix}wte": np.ones(2)}
    assert list(tensors_of_state(state, "it")) == ["h.0.W", "wte"]
    mixed = {"module.a": np.ones(2), "b": np.ones(2)}
    assert list(tensors_of_state(mixed, "it")) == ["module.a", "b"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "it holds no tensors"),
        ({3: np.ones(2)}, "it has a tensor named 3: name tensors by strings"),
        ({"a": [1.0]}, r"it\['a'\] is of type list: give arrays"),
        ({"a": {"b": np.ones(2)}}, r"it\['a'\] is of type dict"),
    ],
)
def test_what_is_no_state_dict_is_refused(state, said):
    with pytest.raises(UserError, match=said):
        tensors_of_state(state, "it")


def test_torch_tensors_of_every_type_are_read_and_others_refused():
    torch = pytest.importorskip("torch", reason="torch is an extra of the tests")
    numbers = torch.linspace(-2, 2, 6).reshape(2, 3)
    state = {str(kind): numbers.to(kind) for kind in (torch.bfloat16, torch.float16, torch.float32)}
    tensors = LazyTensors(tensors_of_state(state, "it"))
    for name, tensor in state.items():
        assert tensors[name].dtype == np.float32
        assert np.array_equal(tensors[name], tensor.float().numpy())
    assert LazyTensors(tensors_of_state({"W": numbers.double()}, "it")).dtype == np.float64
    with pytest.raises(UserError, match=r"it\['q'\] has dtype float8_e4m3fn: give a model in"):
        tensors_of_state({"q": numbers.to(torch.float8_e4m3fn)}, "it")
    unplaced = tensors_of_state({"W": numbers.to("meta")}, "it")
    with pytest.raises(UserError, match="W cannot be read as an array"):
        LazyTensors(unplaced)["W"]
    trained = tensors_of_state({"W": torch.nn.Parameter(numbers)}, "it")
    assert LazyTensors(trained)["W"].shape == (2, 3)
