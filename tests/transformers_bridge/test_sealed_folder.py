"""Models that attlas saved are replaced in one step, and what is damaged is named."""

import errno
import json
import os
import threading

import jax
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder
from attlas.transformers import checkpoint_folder, load_model
from attlas.transformers.attlas_model import save_model, stored_form
from attlas.transformers.load_model import open_checkpoint
from attlas.transformers.sealed_folder import read_sealed_folder
from attlas.transformers.write_safetensors import write_safetensors


def encoder(vocabulary=7):
    return make_encoder(jax.random.key(1), vocabulary, 5, width=6, blocks=2, heads=3, hidden=8)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_full_disk_leaves_the_model_before(tmp_path, monkeypatch, step):
    folder = save_model(tmp_path, stored_form(encoder()))
    before, calls = files(folder), []

    def full(handle):
        calls.append(handle)
        if len(calls) == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        save_model(folder, stored_form(encoder(8)))
    monkeypatch.undo()
    assert files(folder) == before
    save_model(folder, stored_form(encoder(8)))
    assert len(files(folder)) == 2
    assert load_model(folder).parameters == load_model(encoder(8)).parameters


def test_a_model_of_an_earlier_version_is_read_and_replaced(tmp_path):
    config, tensors = stored_form(encoder())
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_safetensors(tmp_path / "model.safetensors", tensors)
    (tmp_path / f"model@{'0' * 16}.safetensors").write_bytes(b"unfinished")
    assert read_sealed_folder(tmp_path) is None
    assert load_model(tmp_path).parameters == load_model(encoder()).parameters
    save_model(tmp_path, stored_form(encoder(8)))
    assert read_sealed_folder(tmp_path) is not None
    assert load_model(tmp_path).parameters == load_model(encoder(8)).parameters
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_every_flipped_bit_is_named_and_what_is_damaged_is_kept(tmp_path, suffix):
    save_model(tmp_path, stored_form(encoder()))
    (path,) = tmp_path.glob(f"*{suffix}")
    content = path.read_bytes()
    for number in range(0, 8 * len(content), 61):
        harmed = bytearray(content)
        harmed[number // 8] ^= 1 << number % 8
        path.write_bytes(harmed)
        with pytest.raises(UserError, match=path.name):
            open_checkpoint(tmp_path)
    said = []
    save_model(tmp_path, stored_form(encoder()), on_damage=said.append)
    assert load_model(tmp_path).parameters == load_model(encoder()).parameters
    assert len(said) == 1
    aside = {file.suffix: file.read_bytes() for file in (tmp_path / "quarantine").iterdir()}
    assert aside[suffix] == harmed


def test_a_reader_beside_a_writer_always_opens_a_whole_model(tmp_path):
    forms = [stored_form(encoder(size)) for size in (7, 8)]
    save_model(tmp_path, forms[0])

    def rewrite():
        for k in range(40):
            save_model(tmp_path, forms[k % 2])

    writer, sizes = threading.Thread(target=rewrite), set()
    writer.start()
    while writer.is_alive():
        opened = checkpoint_folder._sealed(tmp_path)  # numbers are read later
        assert opened is not None
        sizes.add(opened[0]["vocabulary"])
    writer.join()
    assert sizes == {form[0]["vocabulary"] for form in forms}
    assert len(files(tmp_path)) == 2
