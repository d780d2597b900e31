"""Compiler options of one program."""

import os

from attlas._jax.processes import BRIEF_FLAGS

CHEAP_COMPILATION = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
"""The `cheap_flags` of a process, for one program that runs seldom, such as drawing random data."""

LOOP_COMPILATION = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": False,
}


def loop_options() -> dict[str, int | bool] | None:
    """The `compiler_options` of a program whose loop runs longer than compiling takes.

    They undo the lowest level in a process under `attlas._jax.processes.brief_flags`; None in any
    other process, where the flags are the user's.

    Examples:
        >>> loop_options() is None or loop_options() == LOOP_COMPILATION
        True
    """
    is_brief = os.environ.get("XLA_FLAGS") == BRIEF_FLAGS
    return LOOP_COMPILATION if is_brief else None
