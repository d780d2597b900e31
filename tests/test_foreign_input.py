"""Files that ask their reader for more than they are worth: one line, two seconds, 200 MB."""

import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cost import cost_of
from random_checkpoints import random_checkpoint

from attlas._files.budget import LARGEST_ARRAY, LONGEST_PIECE, MOST_LAYERS
from attlas.audit.read_batch import lines_of_text, text_batch, token_batch
from attlas.core.errors import UserError
from attlas.projects.notebook import tagged_cells
from attlas.projects.references import read_references
from attlas.transformers.load_model import load_model
from attlas.transformers.safetensors_file import SafetensorsFile
from attlas.transformers.tokenizer import read_tokenizer
from attlas.transformers.write_safetensors import write_safetensors

SECONDS, MEGABYTES = 2.0, 200.0
BYTES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]


def checkpoint(folder, kind, **settings):
    config, tensors = random_checkpoint(kind)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config | settings))
    return lambda: load_model(folder)


def batch(file):
    return lambda: token_batch(file, length=256, most=8)


def npz(folder, size=2**28):
    """An archive of 0.3 MB that holds 256 MB of zeros."""
    header = b"\x93NUMPY\x01\x00"
    text = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({size // 4},), }}".ljust(117)
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("ids.npy", "w") as file:
            file.write(header + struct.pack("<H", 118) + text.encode() + b"\n")
            for _ in range(size // 2**24):
                file.write(bytes(2**24))
        with archive.open("lengths.npy", "w") as file:
            np.save(file, np.array([size // 4]))
    return batch(folder / "a.npz")


def many_members(folder):
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        for number in range(2000):
            archive.writestr(str(number), b"")
    return batch(folder / "a.npz")


def npy(folder, shape="(1099511627776, 2)"):
    text = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode() + bytes(64)
    (folder / "a.npy").write_bytes(content)
    return batch(folder / "a.npy")


def tokenizer(folder, text="a" * 100, **changes):
    """A tokenizer.json with one token."""
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    document |= dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    (folder / "tokenizer.json").write_text(json.dumps(document | {"model": model} | changes))
    return lambda: text_batch(read_tokenizer(folder, {}), [text], length=8, most=8)


def replacing(folder, *rules, nested=False):
    found = [
        {"type": "Replace", "pattern": pattern, "content": content} for pattern, content in rules
    ]
    normalizer = {"type": "Sequence", "normalizers": found}
    if nested:
        normalizer["normalizers"] = []
        for rule in found:
            normalizer = {"type": "Sequence", "normalizers": [normalizer, rule]}
    return tokenizer(folder, normalizer=normalizer)


def repeating(folder):
    template = [{"Sequence": {"id": "A", "type_id": 0}}] * 2
    rule = {"type": "TemplateProcessing", "single": template, "pair": [], "special_tokens": {}}
    pair = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    processors = [rule | {"pair": pair}] * 40
    return tokenizer(folder, post_processor={"type": "Sequence", "processors": processors})


def backtracking(folder):
    split = {"type": "Split", "pattern": {"Regex": "(a+)+c"}, "behavior": "Isolated"}
    return tokenizer(folder, pre_tokenizer=split | {"invert": False})


ALTERNATIVES = "(?:a|a)*[bd]"
"""Matched in two ways for each letter, from each letter anew; the text ends in a match."""
MANY_WAYS = ("a" * 18 + "c") * 2000 + "b"


def many_ways(folder):
    split = {"type": "Split", "pattern": {"Regex": ALTERNATIVES}, "behavior": "Isolated"}
    return tokenizer(folder, MANY_WAYS, pre_tokenizer=split | {"invert": False})


def many_ways_to_replace(folder):
    rule = {"type": "Replace", "pattern": {"Regex": ALTERNATIVES}, "content": "x"}
    return tokenizer(folder, MANY_WAYS, normalizer=rule)


def pieces_of_all_lengths(folder):
    vocabulary = [["a" * length, -float(length)] for length in range(1, 3000)]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocabulary}
    return tokenizer(folder, "a" * 50_000, model=model)


ENDLESS = {f.__name__: f for f in (many_ways, many_ways_to_replace, pieces_of_all_lengths)}
"""Tokenizers that would split their text for minutes."""


def long_words(folder):
    model = {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "a"}
    model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 10**9}
    return tokenizer(folder, "b" * 10_000, model=model)


def many_lines(folder):
    (folder / "vocab.txt").write_bytes(b"\n" * 2**25)
    return lambda: read_tokenizer(folder, {})


def single_tokens(folder):
    (folder / "a.txt").write_bytes(b"3\n" * 10_000_000)
    return batch(folder / "a.txt")


def one_line(folder):
    (folder / "a.txt").write_bytes(b"3 " * 40_000_000)
    return batch(folder / "a.txt")


def bibliography(folder, content):
    (folder / "a.bib").write_text(content)
    return lambda: read_references(folder / "a.bib")


def notebook(folder, content):
    (folder / "a.ipynb").write_bytes(content)
    return lambda: tagged_cells(folder / "a.ipynb")


def header(folder, content):
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(content)) + content)
    return lambda: SafetensorsFile(folder / "a.safetensors")


REFUSED = {
    "heads of 2^31": (
        lambda f: checkpoint(f, "mistral", head_dim=2**31),
        "lets 2147483648 coordinates of a head turn",
    ),
    "a billion layers": (lambda f: checkpoint(f, "gpt2", n_layer=10**9), f"at most {MOST_LAYERS}"),
    "layers in a billion groups": (
        lambda f: checkpoint(f, "albert", num_hidden_layers=10**9, num_hidden_groups=10**9),
        f"at most {MOST_LAYERS}",
    ),
    "layers times layers": (
        lambda f: checkpoint(f, "albert", num_hidden_layers=4000, inner_group_num=4000),
        f"more than {MOST_LAYERS} layers",
    ),
    "a billion blocks": (lambda f: checkpoint(f, "attlas_encoder", blocks=10**9), "blocks = "),
    "a width of 4000 digits": (
        lambda f: checkpoint(f, "gpt2", n_embd=10**4000),
        "n_embd = 1000",
    ),
    "eps of 4000 digits": (
        lambda f: checkpoint(f, "gpt2", layer_norm_epsilon=10**4000),
        "is not a finite number above 0",
    ),
    "layer types that are lists": (
        lambda f: checkpoint(f, "llama", layer_types=[[]]),
        "layer_types",
    ),
    "256 MB of ids in 0.3 MB": (npz, f"268435584 bytes, of at most {LARGEST_ARRAY}"),
    "an archive of 2000 members": (many_members, "members"),
    "8 TB of ids": (npy, "does not fit"),
    "a shape that overflows": (lambda f: npy(f, "(2**62, 2**62)"), "holds no"),
    "a token 2^32 - 1": (
        lambda f: tokenizer(
            f, model={"type": "BPE", "vocab": {"a": 0, "b": 2**32 - 1}, "merges": []}
        ),
        "numbers a token 4294967295",
    ),
    "thirty rules that double": (
        lambda f: replacing(f, *[({"String": "a"}, "aa")] * 30),
        "more than 16 times longer",
    ),
    "thirty rules inside each other": (
        lambda f: replacing(f, *[({"String": "a"}, "aa")] * 30, nested=True),
        "more than 16 times longer",
    ),
    "a rule that writes a book": (
        lambda f: replacing(f, ({"Regex": ""}, "a" * 10_000)),
        "writes 10000 characters",
    ),
    "a thousand rules": (
        lambda f: replacing(f, *[({"String": "a"}, "b")] * 1000),
        "has 1001 rules in one step",
    ),
    "templates that repeat a text": (repeating, "encloses a text in more than a few tokens"),
    "a pattern that backtracks": (backtracking, "cannot split a text"),
    "words of any length": (long_words, "pieces of words"),
    "a vocabulary of 2^25 lines": (many_lines, "lines"),
    "lines of single tokens": (single_tokens, "in its first 100000 lines"),
    "80 MB in one line": (one_line, "a line has 1048576 characters or more"),
    "entries that never end": (lambda f: bibliography(f, "@a{k," * 800_000), "'k' has no brace"),
    "entries inside each other": (lambda f: bibliography(f, "@a{" * 1_300_000), ""),
    "blank lines in an entry": (
        lambda f: bibliography(f, "@a{k,\n" + "\n" * 4_000_000 + "x\n}\n"),
        "lacks author",
    ),
    "a year of 5000 digits": (
        lambda f: bibliography(
            f, f"@a{{k,\ntitle={{T}},\nauthor={{A}},\nyear={{{'9' * 5000}}}\n}}\n"
        ),
        "cannot be read as BibTeX",
    ),
    "a notebook of empty cells": (
        lambda f: notebook(f, b'{"cells": [' + b"{}," * 8_000_000 + b"{}]}"),
        "has more than 2097152 entries",
    ),
    "a notebook of brackets": (lambda f: notebook(f, b"[" * 1_000_000), "levels"),
    "a header of empty tables": (
        lambda f: header(f, b"{" + b'"a":{},' * 2_000_000 + b'"b":{}}'),
        "has more than 1048576 entries",
    ),
    "a header of brackets": (lambda f: header(f, b"[" * 1_000_000), "levels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_costs_too_much_is_refused_in_one_line(tmp_path, name):
    make, said = REFUSED[name]
    read = make(tmp_path)

    def refused():
        if name == "entries inside each other":  # text without an entry
            assert read() == {}
            return
        with pytest.raises(UserError) as caught:
            read()
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600

    cost = cost_of(refused)
    assert cost.seconds < SECONDS
    assert cost.megabytes < MEGABYTES


def test_of_a_long_text_only_what_is_asked_for_is_read(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"3 4\n" * 20_000_000)
    cost = cost_of(lambda: token_batch(file, length=256, most=8))
    letters = read_tokenizer(scored(tmp_path), {})
    more = cost_of(lambda: text_batch(letters, lines_of_text(file), length=256, most=8))
    assert max(cost.seconds, more.seconds) < SECONDS / 4
    assert max(cost.megabytes, more.megabytes) < MEGABYTES / 4


def scored(folder):
    """A tokenizer of llama2.c whose pieces are runs of one letter."""
    raw = struct.pack("<i", 8)
    for number, piece in enumerate([*BYTES, " ", *("a" * 2**k for k in range(8))]):
        raw += struct.pack("<fi", float(number), len(piece)) + piece.encode()
    (folder / "tok300.bin").write_bytes(raw)
    return folder


def test_a_line_of_forty_thousand_letters_is_split_at_once(tmp_path):
    encode = read_tokenizer(scored(tmp_path), {}).encode
    assert encode is not None
    cost = cost_of(lambda: encode("a" * 40_000))
    assert cost.seconds < SECONDS
    # Of equal scores the first are merged first: a shorter run is left at the end.
    assert encode("a" * 300)[:4] == [1, 259, 267, 267]
    (tmp_path / "a.txt").write_text("a" * 3 * LONGEST_PIECE)
    assert [len(line) for line in lines_of_text(tmp_path / "a.txt")] == [LONGEST_PIECE] * 3


@pytest.mark.thorough
@pytest.mark.parametrize("name", ENDLESS)
def test_a_tokenizer_that_takes_too_long_ends_in_one_line(tmp_path, name):
    program = (
        "import sys, time; from pathlib import Path; from test_foreign_input import ENDLESS\n"
        "from attlas.core.errors import UserError\n"
        f"read = ENDLESS[{name!r}](Path(sys.argv[1]))\n"
        "began = time.monotonic(), time.process_time()\n"
        "try: read()\n"
        "except UserError as error: print(error)\n"
        "print(min(time.monotonic() - began[0], time.process_time() - began[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    said, seconds = done.stdout.strip().split("\n")
    assert done.returncode == 0, done.stderr
    assert "the tokenizer takes more than 1." in said
    assert float(seconds) < SECONDS


@pytest.mark.thorough
def test_the_command_line_ends_with_one_line_and_code_2(tmp_path):
    checkpoint(tmp_path, "gpt2", n_layer=10**9)
    command = [sys.executable, "-m", "attlas", "audit", str(tmp_path), "--level", "weights"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr.strip().count("\n")) == (2, 0)
    assert "n_layer = 1000000000" in done.stderr
