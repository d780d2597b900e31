"""The environment of a result: code hash, versions, commit, device, flags, precision."""

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jax

import attlas

PACKAGE = Path(attlas.__path__[0])
SHOWING = ("cli/", "display/", "experiments/panels/", "site/")
_SAID = {
    "commit": "commit of attlas",
    "code": "code of attlas (sha256)",
    "device": "device",
    "platform": "platform",
    "flags": "XLA flags",
    "matmul_precision": "precision of matrix products",
}
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
    return {
        "code": code_hash(),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "device": f"{device.platform}: {device.device_kind}",
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "flags": os.environ.get("XLA_FLAGS", ""),
        "matmul_precision": matmul_precision() or "default",
    }


@cache
def _versions() -> dict[str, str]:
    """Read once: every verdict carries them, and each is a file to parse."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def summarise_environment(metadata_list: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The environments of records and verdicts: each entry with all its values, as text.

    Examples:
        >>> summarise_environment([{"device": "cpu", "versions": {"jax": "0.10"}}])
        {'device': 'cpu', 'jax': '0.10'}
    """
    values: dict[str, list[str]] = {}
    dates = []
    for metadata in metadata_list:
        flat = {k: v for k, v in metadata.items() if k in _SAID} | metadata.get("versions", {})
        for name, value in flat.items():
            text = "not known" if value is None else str(value) or "none"
            if name in ("code", "commit") and value:
                text = text[:12]
            if text not in values.setdefault(name, []):
                values[name].append(text)
        if metadata.get("finished"):
            dates.append(str(metadata["finished"])[:10])
    said = {_SAID.get(name, name): ", ".join(sorted(texts)) for name, texts in values.items()}
    if dates:
        span = dict.fromkeys((min(dates), max(dates)))
        said = {"computed": " to ".join(span), **said}
    return said
