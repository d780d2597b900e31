"""The environment of a result: code hash, versions, commit, device, flags, precision."""

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jax

import attlas

PACKAGE = Path(attlas.__path__[0])
SHOWING = ("cli/", "display/", "experiments/panels/", "site/")
LIBRARIES = ("attlas", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax")


@cache
def code_hash() -> str:
    r"""The sha256 of the package's sources that can change a result, by path and content.

    The sources that only display results (`cli`, `display`, `experiments/panels`, `site`) are
    excluded.

    Examples:
        >>> len(code_hash())
        64
    """
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).as_posix()
        if inside.startswith(SHOWING):
            continue
        digest.update(inside.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def commit() -> str | None:
    """The commit of the source checkout that the package runs from; None without git or checkout.

    Examples:
        >>> commit() is None or len(commit()) == 40
        True
    """
    root = PACKAGE.parent.parent
    git = shutil.which("git")
    if git is None or PACKAGE.parent.name != "src" or not (root / ".git").exists():
        return None
    answer = subprocess.run(
        [git, "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def matmul_precision() -> str | None:
    """JAX's precision of matrix products, which matters on accelerators.

    Returns:
        For example "highest", which makes float32 mean float32; None for the device's default.

    Examples:
        >>> with jax.default_matmul_precision("highest"):
        ...     matmul_precision()
        'highest'
    """
    return jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]


def environment() -> dict[str, Any]:
    """The metadata that every record and verdict carries.

    Returns:
        Plain JSON: code hash, commit or None, versions by library, device, platform, flags, and
        JAX's current precision of matrix products.

    Examples:
        >>> sorted(environment())
        ['code', 'commit', 'device', 'flags', 'matmul_precision', 'platform', 'versions']
    """
    device = jax.devices()[0]
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {
        "code": code_hash(),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **versions},
        "device": f"{device.platform}: {device.device_kind}",
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "flags": os.environ.get("XLA_FLAGS", ""),
        "matmul_precision": matmul_precision() or "default",
    }
