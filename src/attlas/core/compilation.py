"""How programs are compiled: compiler flags of a process, options of one program, and the cache."""

import importlib.metadata
import os
from pathlib import Path

import platformdirs

CHEAP_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_multi_thread_eigen=false"
)
"""Compiler flags for many tiny programs: compiling is what costs there, not running."""
CHEAPER_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
"""They halve the time again (13.1 s to 6.9 s for four claims), where XLA knows them: an unknown
flag ends the process, so that only the tested release series gets them."""
BRIEF_FLAGS = f"{CHEAPER_FLAGS} --xla_backend_optimization_level=1"
"""For cells of some seconds, half of which is compiling: 212 s of eight quick experiments become
184 s with the level. At level 0 compiling nearly ends, but training takes three times as long."""
TESTED_SERIES = "0.10."
CHEAP_COMPILATION = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
"""The same as `compiler_options` of one program that runs seldom, such as drawing random data."""


def cheap_flags() -> str:
    """The compiler flags of a process that compiles much and runs little.

    Returns:
        Text for XLA_FLAGS that the installed XLA accepts.

    Examples:
        >>> cheap_flags().startswith("--xla_backend_optimization_level=0")
        True
    """
    return f"{CHEAP_FLAGS} {CHEAPER_FLAGS}" if _is_tested_series() else CHEAP_FLAGS


def brief_flags() -> str:
    """The compiler flags of a process that compiles and runs for some seconds each.

    Returns:
        Text for XLA_FLAGS; empty where the installed XLA is not of the series that was tried.

    Examples:
        >>> brief_flags() in ("", BRIEF_FLAGS)
        True
    """
    return BRIEF_FLAGS if _is_tested_series() else ""


def _is_tested_series() -> bool:
    return importlib.metadata.version("jaxlib").startswith(TESTED_SERIES)


def compile_cache() -> Path:
    """The folder of compiled programs: ATTLAS_CACHE, else the user's cache folder.

    Returns:
        Its path; JAX makes it when it is first written.
    """
    named = os.environ.get("ATTLAS_CACHE")
    return Path(named or platformdirs.user_cache_dir("attlas", appauthor=False)) / "compiled"
