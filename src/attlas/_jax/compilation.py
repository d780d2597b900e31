"""Compilation: compiler flags of a process, options of one program, and the cache."""

import importlib.metadata
import os
from pathlib import Path

import platformdirs

_LEAST = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
CHEAP_FLAGS = f"{_LEAST} --xla_cpu_multi_thread_eigen=false"
"""Compiler flags for many tiny programs: compiling is what costs there, not running."""
CHEAPER_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
"""They halve the time again (13.1 s to 6.9 s for four claims), where XLA knows them: an unknown
flag ends the process, so that only the tested release series gets them."""
SAMPLER_FLAGS = f"{CHEAPER_FLAGS} --xla_backend_optimization_level=1"
"""For checking claims, whose samplers train and are run again at every move of a search."""
BRIEF_FLAGS = f"{CHEAPER_FLAGS} {_LEAST}"
"""For cells of some seconds, half of which is compiling: most programs run once, and those whose
loops run long ask for more by `loop_options`. At level 0 for all of them training takes three
times as long; at level 1 for all the first cells of the quick experiments take 380 s, so 347."""
TESTED_SERIES = "0.10."
CHEAP_COMPILATION = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
"""The same as `compiler_options` of one program that runs seldom, such as drawing random data."""

LOOP_COMPILATION = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": False,
}


def cheap_flags() -> str:
    """XLA_FLAGS for a process that compiles much and runs little.

    Examples:
        >>> cheap_flags().startswith("--xla_backend_optimization_level=0")
        True
    """
    return f"{CHEAP_FLAGS} {CHEAPER_FLAGS}" if _is_tested_series() else CHEAP_FLAGS


def brief_flags() -> str:
    """XLA_FLAGS for a process whose programs compile and run for some seconds each.

    Empty where the installed XLA is not of the tested series.

    Examples:
        >>> brief_flags() in ("", BRIEF_FLAGS)
        True
    """
    return BRIEF_FLAGS if _is_tested_series() else ""


def sampler_flags() -> str:
    """XLA_FLAGS for a process that checks claims.

    Examples:
        >>> sampler_flags() in (SAMPLER_FLAGS, CHEAP_FLAGS)
        True
    """
    return SAMPLER_FLAGS if _is_tested_series() else CHEAP_FLAGS


def loop_options() -> dict[str, int | bool] | None:
    """The `compiler_options` of a program whose loop runs longer than compiling takes.

    They undo the lowest level in a process under `brief_flags`; None in any other process, where
    the flags are the user's.

    Examples:
        >>> loop_options() is None or loop_options() == LOOP_COMPILATION
        True
    """
    is_brief = os.environ.get("XLA_FLAGS") == BRIEF_FLAGS
    return LOOP_COMPILATION if is_brief else None


def _is_tested_series() -> bool:
    return importlib.metadata.version("jaxlib").startswith(TESTED_SERIES)


def compile_cache() -> Path:
    """The folder of compiled programs: ATTLAS_CACHE, else the user's cache folder."""
    named = os.environ.get("ATTLAS_CACHE")
    return Path(named or platformdirs.user_cache_dir("attlas", appauthor=False)) / "compiled"
