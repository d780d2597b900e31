"""Monitor and attention groups under DistributedDataParallel and FSDP, by gloo on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from torch import distributed  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from attlas.torch import LpMirrorDescent, Monitor, attention_groups  # noqa: E402

STATISTICS = ("entropy", "largest_logit", "sink", "gap", "margin")


def language_model(name="Llama"):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        hidden_size=16, num_attention_heads=2, num_hidden_layers=2, intermediate_size=32,
        vocab_size=50, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config)


def batch():
    ids = torch.randint(3, 50, (2, 7), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids}


def encoder():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def whole_shards(model):
    return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)


def shards(model):
    layers = model.layers if hasattr(model, "layers") else model.model.layers
    for layer in layers:
        fully_shard(layer, mesh=distributed.device_mesh.init_device_mesh("cpu", (1,)))
    return fully_shard(model, mesh=distributed.device_mesh.init_device_mesh("cpu", (1,)))


WRAPPERS = {"DDP": DistributedDataParallel, "FSDP": whole_shards, "FSDP2": shards}


@pytest.fixture
def alone(tmp_path):
    """A group of one process."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


def measured(model, inputs, path):
    return Monitor(model, inputs, path / "a.monitor.jsonl").measure(0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_monitor_sees_what_it_sees_without(alone, tmp_path, wrapper):
    inputs = (torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)),)
    for make, read in ((language_model, batch()), (encoder, inputs)):
        bare = measured(make(), read, tmp_path)
        line = measured(WRAPPERS[wrapper](make()), read, tmp_path)
        assert [n.removeprefix("module.") for n in line["layers"]] == bare["layers"]
        for name in STATISTICS:
            assert torch.allclose(torch.tensor(line[name]), torch.tensor(bare[name]), atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_groups_train_the_same_weights_as_without(alone, tmp_path, wrapper):
    after = {}
    for wrap in (lambda model: model, WRAPPERS[wrapper]):
        model = wrap(language_model())
        groups = attention_groups(model, p=3.0, show=None)
        assert sorted((group["p"], len(group["params"])) for group in groups) == [
            (2.0, 15),
            (3.0, 6),
        ]
        optimizer = LpMirrorDescent(groups, lr=0.05, scaling="plain")
        for _ in range(2):
            optimizer.zero_grad()
            model(**batch(), labels=batch()["input_ids"]).loss.backward()
            optimizer.step()
        after[wrap] = model(**batch(), labels=batch()["input_ids"]).loss.item()
    first, second = after.values()
    assert abs(first - second) < 1e-5


@pytest.mark.thorough
def test_two_processes_see_what_one_sees(tmp_path):
    """Each holds half of the parameters, and the group has the whole attention of its batch."""
    command = [sys.executable, __file__, str(tmp_path)]
    workers = [subprocess.Popen([*command, str(rank)]) for rank in range(2)]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    bare = measured(language_model(), batch(), tmp_path)
    for rank in range(2):
        line = json.loads((tmp_path / f"line{rank}").read_text())
        for name in STATISTICS:
            assert torch.allclose(torch.tensor(line[name]), torch.tensor(bare[name]), atol=1e-6)


def worker(folder, rank):
    """One of two processes."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/two", rank=rank, world_size=2
    )
    model = language_model()
    mesh = distributed.device_mesh.init_device_mesh("cpu", (2,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    model = fully_shard(model, mesh=mesh)
    (folder / f"line{rank}").write_text(json.dumps(measured(model, batch(), folder)))
    distributed.destroy_process_group()


if __name__ == "__main__":
    worker(Path(sys.argv[1]), int(sys.argv[2]))
