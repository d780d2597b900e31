"""`import attlas as at` is enough to begin, and costs nothing until a name is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attlas


def test_every_name_exists_is_documented_and_appears_in_the_help():
    for name in attlas.__all__:
        found = getattr(attlas, name)
        assert found.__doc__, name
        assert name in ("Claim", "Solution", "Trajectory") or f"`{name}" in (
            attlas.__doc__ or ""
        ), name
    assert set(attlas.__all__) <= set(dir(attlas))


def test_types_know_the_same_names():
    tree = ast.parse(Path(attlas.__file__).read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(attlas.__all__)


def test_importing_it_imports_neither_jax_nor_numpy():
    program = "import sys, attlas; print(sorted({'jax', 'numpy', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.mark.thorough
def test_the_door_of_trained_models_opens_in_either_order():
    program = (
        "from attlas.transformers{} import load_model; "
        "from attlas.transformers import {} as door; {}"
    )
    for first, name, said in (
        ("", "load_model", "print(callable(door))"),
        (".load_model", "load_model", "print(callable(door))"),
        (".load_model", "canonical", "print(callable(load_model))"),
    ):
        command = [sys.executable, "-c", program.format(first, name, said)]
        done = subprocess.run(command, capture_output=True, check=True)
        assert done.stdout.strip() == b"True"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = attlas.chek


@pytest.mark.thorough
def test_audit_is_callable_in_either_order():
    for first in ("", "import attlas.audit.finding; "):
        program = f"{first}import attlas; print(callable(attlas.audit))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert done.stdout.strip() == b"True"
