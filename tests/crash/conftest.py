"""The library that is loaded before libc, and a folder in memory."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("system_calls.c")


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """`system_calls.c`, built."""
    if sys.platform != "linux":
        pytest.skip("libraries are preloaded on Linux alone")
    if shutil.which("gcc") is None:
        pytest.skip("gcc builds the library to preload")
    built = tmp_path_factory.mktemp("library") / "system_calls.so"
    flags = ["-Wall", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", str(built), str(SOURCE), "-ldl"], check=True)
    return built


@pytest.fixture
def room() -> Iterator[str]:
    """A folder in memory where there is one: a rehearsal brings thousands of files to disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield folder
