"""Readers of foreign files on spoilt inputs; `make fuzz` does it with others, and for longer."""

import sys
import time

import fuzz_readers
import numpy as np
import pytest
from fuzz_readers import CORPUS, findings, outcome, read_corpus, watched
from spoilt_files import KINDS, Kind

INPUTS = dict.fromkeys(KINDS, 5000) | {
    "config": 1500,
    "safetensors": 1000,
    "header": 1000,
    "gguf": 1500,
    "record": 250,
}
"""Which inputs are read does not depend on the machine; about two minutes for all kinds."""
SECONDS = 60.0
"""Of the processor for one kind, on any machine."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_and_the_corpus_are_answered_or_refused(kind):
    paths = [CORPUS / kind / "none", *sorted((CORPUS / kind).glob("*"))]
    results = zip(paths, read_corpus(kind, paths), strict=True)
    assert {path.name: result.wrong for path, result in results if result.wrong} == {}


def test_the_corpus_is_of_kinds_that_are_read():
    inputs = [path.parent.name for path in CORPUS.glob("*/*")]
    assert set(inputs) <= KINDS.keys()
    assert len(inputs) > 100, "python tests/fuzz_readers.py --enlarge writes some"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_inputs_are_answered_or_refused_in_one_line(kind):
    number, wrong, _ = findings(kind, 0, SECONDS, INPUTS[kind])
    assert [(finding.number, finding.wrong) for finding in wrong] == []
    assert number == INPUTS[kind]


def refused_in_two_lines(_):
    raise fuzz_readers.UserError("one\ntwo")


FAULTS = {
    "ZeroDivisionError": lambda _: 1 // 0,
    "is not one line": refused_in_two_lines,
    "took 3": lambda _: np.ones(40_000_000).sum(),
    "took 0.": lambda _: time.sleep(0) or sum(range(10**7)),
    "hangs": lambda _: [None for _ in iter(int, 1)],
}


@pytest.mark.parametrize("wrong", FAULTS)
def test_what_a_reader_may_not_do_is_a_finding(wrong, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_readers, "SECONDS", 0.1 if wrong == "took 0." else 2.0)
    monkeypatch.setattr(fuzz_readers, "HANGS", 1.0 if wrong == "hangs" else 60.0)
    assert outcome(Kind("a", lambda *_: None, FAULTS[wrong]), tmp_path).wrong.startswith(wrong)


DYING = """
import os, pathlib, sys, time
for name in sys.argv[1:]:
    pathlib.Path(f"{name}-{os.getpid()}").write_bytes(name.encode())
    if name == "killed":
        os.abort()
    if name == "slow":
        time.sleep(60)
    os.remove(f"{name}-{os.getpid()}")
"""


def test_an_input_that_ends_the_process_is_kept_and_the_other_kinds_are_read(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzz_readers, "CURRENT", tmp_path)
    monkeypatch.setattr(fuzz_readers, "CORPUS", tmp_path / "corpus")
    assert not watched([sys.executable, "-c", DYING], ["first", "killed", "slow", "last"], 3.0)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["ends the process (-6)", "hangs"]
    inputs = sorted(path.read_bytes() for path in (tmp_path / "corpus").glob("*/*"))
    assert inputs == [b"killed", b"slow"]
    assert watched([sys.executable, "-c", DYING], ["first", "last"], 30.0)
