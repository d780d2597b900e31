"""A killed audit resumes with the layers that it had finished."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from experiments.small_model import CONTEXT, LAYERS, all_layers, assert_same, small_model

from attlas.audit.weights_level.weights_level import DIGEST, weights_level
from attlas.core.errors import UserError
from attlas.experiments.layer_cache import LayerCache, files_digest
from attlas.transformers import load_model

KILLED = """
import sys, time
from pathlib import Path
from attlas.audit.weights_level.weights_level import weights_level
from attlas.transformers import load_model
from attlas.experiments.layer_cache import LayerCache

source, root = Path(sys.argv[1]), Path(sys.argv[2])
kept = LayerCache(root, source, int(sys.argv[3]))

def told(done, all_):
    print(done, flush=True)
    if done == 2:
        time.sleep(600)

weights_level(load_model(source), int(sys.argv[3]), told, kept.get_or_compute)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def layers(source):
    return all_layers(source)


@pytest.mark.thorough
def test_after_kill_9_only_the_unfinished_layer_is_computed(source, layers, tmp_path):
    command = [sys.executable, "-c", KILLED, str(source), str(tmp_path), str(CONTEXT)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "JAX_ENABLE_X64": "1"}
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline().strip() for _ in range(2)]
        child.kill()
    assert (lines, child.returncode) == (["1", "2"], -9)
    kept, computed = LayerCache(tmp_path, source, CONTEXT), []
    assert kept.missing(LAYERS) == (2,)

    def noting(index, compute, digest):
        return kept.get_or_compute(index, lambda: computed.append(index) or compute(), digest)

    found = weights_level(load_model(source), CONTEXT, cache=noting)
    assert (kept.resumed, computed) == ([0, 1], [2])
    assert (found.qk_norm.values[1] == layers[1]["qk_norm"]).all()
    for index in range(LAYERS):
        again = kept.read(index)
        assert again is not None
        assert_same(again, layers[index])
    kept.forget()
    assert kept.missing(LAYERS) == (0, 1, 2)


@pytest.mark.parametrize("harm", ["truncated", "altered", "a folder", "no archive"])
def test_a_damaged_layer_is_named_and_computed_again(harm, source, layers, tmp_path):
    said = []
    kept = LayerCache(tmp_path, source, CONTEXT, said.append)
    kept.write(0, layers[0])
    document = kept.folder / "00000.json"
    path = document if harm == "a folder" else arrays_of(document)
    content = path.read_bytes()
    if harm == "truncated":
        path.write_bytes(content[:-3])
    elif harm == "altered":
        path.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
    elif harm == "no archive":
        path.write_bytes(content[:64])
    else:
        path.unlink()
        path.mkdir()
    assert kept.read(0) is None
    (line,) = said
    assert str(path) in line
    assert line.endswith("layer 0 is computed again")
    assert len(list((tmp_path / "audit-layers" / "quarantine").iterdir())) == 2
    digest = str(layers[0][DIGEST])
    assert_same(kept.get_or_compute(0, lambda: layers[0], lambda: digest), layers[0])
    assert_same(kept.get_or_compute(0, dict, lambda: digest), layers[0])
    kept.forget()
    assert len(list((tmp_path / "audit-layers" / "quarantine").iterdir())) == 2


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_every_flipped_bit_of_a_layer_is_noticed(source, tmp_path, suffix):
    said = []
    kept = LayerCache(tmp_path, source, CONTEXT, said.append)
    values = {"norm": np.arange(3.0)}
    kept.write(0, values)
    document = kept.folder / "00000.json"
    path = document if suffix == ".json" else arrays_of(document)
    content = path.read_bytes()
    numbers = range(0, 8 * len(content), 61)
    for number in numbers:
        harmed = bytearray(content)
        harmed[number // 8] ^= 1 << number % 8
        path.write_bytes(harmed)
        assert kept.read(0) is None, number
        kept.write(0, values)
    assert len(said) == len(numbers)


def test_other_files_another_context_or_other_code_find_nothing(source, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    here = LayerCache(tmp_path, copy, CONTEXT)
    assert files_digest(source) == here.digest
    assert LayerCache(tmp_path, copy, CONTEXT).folder == here.folder
    assert LayerCache(tmp_path, copy, CONTEXT + 1).folder != here.folder
    monkeypatch.setattr("attlas.experiments.layer_cache.code_hash", lambda: "other")
    assert LayerCache(tmp_path, copy, CONTEXT).folder != here.folder
    monkeypatch.undo()
    weights = next(copy.glob("*.safetensors"))
    os.utime(weights, ns=(0, 0))  # the same numbers at another time
    assert LayerCache(tmp_path, copy, CONTEXT).folder == here.folder
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert LayerCache(tmp_path, copy, CONTEXT).folder != here.folder


def test_an_audit_after_a_stopped_one_of_a_like_model_is_its_own(tmp_path):
    """Names, shapes, sizes and times are equal, the numbers are not."""
    first, second = (small_model(tmp_path / f"{seed}", seed) for seed in (1, 2))
    for folder in (first, second):
        for path in folder.iterdir():
            os.utime(path, ns=(10**18, 10**18))
    assert _listing(first) == _listing(second)

    def stopping(done: int, all_: int) -> None:
        del all_
        if done == 2:
            raise KeyboardInterrupt

    kept = LayerCache(tmp_path, first, CONTEXT)
    with pytest.raises(KeyboardInterrupt):
        weights_level(load_model(first), CONTEXT, stopping, kept.get_or_compute)
    assert kept.missing(LAYERS) == (2,)

    other = LayerCache(tmp_path, second, CONTEXT)
    found = weights_level(load_model(second), CONTEXT, cache=other.get_or_compute)
    fresh = weights_level(load_model(second), CONTEXT)
    for name in fresh:
        np.testing.assert_array_equal(found[name].values, fresh[name].values, err_msg=str(name))
    assert other.resumed == []


def test_weights_that_change_under_a_running_audit_are_not_stored_as_those_before(tmp_path):
    """The files are exchanged after they were hashed, with equal sizes and times."""
    first, second = (small_model(tmp_path / f"{seed}", seed) for seed in (1, 2))
    fresh = {folder: weights_level(load_model(folder), CONTEXT) for folder in (first, second)}
    whole = {path.name: path.read_bytes() for path in first.iterdir()}
    kept, said = LayerCache(tmp_path, first, CONTEXT), []
    shutil.copytree(second, first, dirs_exist_ok=True)

    def stopping(done: int, all_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights_level(load_model(first), CONTEXT, stopping, kept.get_or_compute)
    for name, content in whole.items():
        (first / name).write_bytes(content)
    again = LayerCache(tmp_path, first, CONTEXT, said.append)
    assert again.folder == kept.folder
    found = weights_level(load_model(first), CONTEXT, cache=again.get_or_compute)
    np.testing.assert_array_equal(found.qk_norm.values, fresh[first].qk_norm.values)
    assert (found.qk_norm.values != fresh[second].qk_norm.values).all()
    assert said == ["layer 0 was computed from other weights: it is computed again"]
    assert again.resumed == []


def _listing(folder: Path) -> list[tuple[str, int, int]]:
    states = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]


def test_weights_in_a_bin_count_only_where_no_safetensors_are(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    (copy / "pytorch_model.bin").write_bytes(b"a pickle that nothing reads")
    assert files_digest(copy) == files_digest(source)
    next(copy.glob("*.safetensors")).unlink()
    one = files_digest(copy)
    (copy / "pytorch_model.bin").write_bytes(b"another")
    assert files_digest(copy) != one


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(source, layers, tmp_path):
    (tmp_path / "audit-layers").write_text("no folder")
    with pytest.raises(UserError, match=r"cannot write .* with --results"):
        LayerCache(tmp_path, source, CONTEXT).write(0, layers[0])
