"""How every test and doctest runs: float64, strict promotion, shapes checked, one cache."""

import gc
import os
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from attlas._jax.held_memory import give_back
from attlas._jax.processes import cheap_flags, look_for_cycles_seldom

look_for_cycles_seldom()
# Where Python is told to write no bytecode, each command that a test starts would compile every
# module of ours again: 2.5 of the 9.4 processor seconds of `attlas list`.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
ROOT = Path(__file__).parent
CACHE = ROOT / ".cache"
PAPERS = ROOT / "papers"
SHORT = ("bounds", "data", "kernels", "losses", "measures", "models", "optim", "solvers")

# The examples of the extra attlas[torch] run where torch is installed.
_EXTRA = ("torch/[!_]*.py", "capture/[!_]*.py", "audit/captured/[!_]*.py")
collect_ignore_glob = [] if find_spec("torch") else [f"src/attlas/{each}" for each in _EXTRA]
# Likewise those of the extra attlas[mcp].
collect_ignore_glob += [] if find_spec("mcp") else ["src/attlas/server/server.py"]
# Papers that are not installed are written for JAX as it comes; a test of their own runs them.
PROJECTS = [p.parent for p in PAPERS.glob("*/pyproject.toml")]
collect_ignore = [str(p) for p in PROJECTS if not (p / "__init__.py").exists()]

# Before JAX starts. Tests compile many small programs and run each for microseconds, so the
# cheap compiler settings shorten them; they are inherited by the processes tests start.
os.environ.setdefault("XLA_FLAGS", cheap_flags())
# No compiled program says from which lines it comes: a tenth of lowering many small ones.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("ATTLAS_CACHE", str(CACHE))
# The thorough tests check all claims at a seed that nobody has tried: a new one each day.
os.environ.setdefault("ATTLAS_TEST_SEED", str(date.today().toordinal()))

from jaxtyping import install_import_hook  # noqa: E402

# Shapes are checked in tests only: users do not pay for it. Left out, as each function costs a
# millisecond at import: packages whose functions name no shapes, and the claims, of which few do
# and which call what is checked. A compiler of torch's cannot look through the checks.
PACKAGES = [p.name for p in (ROOT / "src" / "attlas").iterdir() if p.is_dir()]
UNCHECKED = ("claims", "cli", "display", "experiments", "projects", "site", "testing", "torch")
CHECKED = [f"attlas.{p}" for p in PACKAGES if p not in UNCHECKED]
CHECKED += [f"{p.parent.name}.library" for p in PAPERS.glob("*/library")]
install_import_hook(CHECKED, "beartype.beartype")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from hypothesis.configuration import set_hypothesis_home_dir  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(CACHE / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# A first example may compile for seconds: time limits per example would measure the compiler.
settings.register_profile("attlas", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("attlas")
set_hypothesis_home_dir(CACHE / "hypothesis")


def pytest_report_header() -> str:
    """The seed of the day, by which a failure of another day is repeated."""
    return f"claims of the thorough tests: ATTLAS_TEST_SEED={os.environ['ATTLAS_TEST_SEED']}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples of what trains a paper's models are thorough: they take seconds each."""
    for item in items:
        library = (
            PAPERS in item.path.parents and item.path.relative_to(PAPERS).parts[1] == "library"
        )
        short = library and item.path.relative_to(PAPERS).parts[2] in SHORT
        if isinstance(item, pytest.DoctestItem) and library and not short:
            item.add_marker(pytest.mark.thorough)


MEMORY_LIMIT = 1_400_000_000


def pytest_collection_finish() -> None:
    """What collecting the tests has made stays: looking through it for cycles takes seconds."""
    give_back(MEMORY_LIMIT)
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Between two files, clear the compiled programs: a process with those of all has gigabytes."""
    if nextitem is None or nextitem.path != item.path:
        give_back(MEMORY_LIMIT)


_AT_IMPORT = pytest.StashKey[dict[str, dict]]()


@pytest.fixture(autouse=True)
def fresh_draws(request: pytest.FixtureRequest) -> None:
    """Every test draws the same numbers, whichever tests ran before it in its process.

    A generator that a test file holds goes back to its state after the import before each test.
    """
    file = request.node.getparent(pytest.Module)
    if file is None or not isinstance(file.obj, ModuleType):  # examples of a text file
        return
    draws = {k: v for k, v in vars(file.obj).items() if isinstance(v, np.random.Generator)}
    states = {name: draw.bit_generator.state for name, draw in draws.items()}
    for name, state in file.stash.setdefault(_AT_IMPORT, states).items():
        draws[name].bit_generator.state = state


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets; a test that requires it is skipped where there is none."""
    named = os.environ.get("ATTLAS_DATA")
    if not named:
        pytest.skip("real data: ATTLAS_DATA names no folder")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"real data: ATTLAS_DATA = {named} is not a folder")
    return folder


class TorchLike:
    """What a torch tensor looks like from outside: NumPy reads it after `detach` and `cpu` only."""

    def __init__(self, array, dtype: str = "", steps: tuple[str, ...] = ()) -> None:
        self.array, self.steps = np.asarray(array), steps
        self.dtype = dtype or f"torch.{self.array.dtype}"

    def detach(self) -> "TorchLike":
        """The tensor without its graph."""
        return TorchLike(self.array, self.dtype, (*self.steps, "detach"))

    def cpu(self) -> "TorchLike":
        """The tensor on the host."""
        return TorchLike(self.array, self.dtype, (*self.steps, "cpu"))

    def float(self) -> "TorchLike":
        """The tensor in float32."""
        return TorchLike(self.array.astype(np.float32), "torch.float32", self.steps)

    def __array__(self, dtype=None, copy=None):
        if self.steps != ("detach", "cpu"):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.asarray(self.array, dtype)


@pytest.fixture(scope="session")
def torch_like() -> type[TorchLike]:
    """A class of tensors as torch's, for tests that run without torch."""
    return TorchLike
