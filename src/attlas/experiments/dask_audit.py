"""Layers of level weights as tasks of dask.distributed, which `KeptLayers` receives."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from attlas.audit.weights_level.weights_level import layer_weights
from attlas.core.errors import UserError
from attlas.experiments.compatibility import alike
from attlas.experiments.dask_backend import RESUMES, dask_client, ended, require_workers
from attlas.experiments.layer_cache import KeptLayers, files_digest, files_state
from attlas.transformers.load_model import load_model
from attlas.transformers.trained_transformer import TrainedTransformer


def keep_on_dask(
    kept: KeptLayers,
    source: Path,
    layers: int,
    *,
    on: str,
    workers: int = 2,
    insecure: bool = False,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> None:
    """Compute the layers that are not kept yet on a dask cluster, and keep each as it comes.

    Workers elsewhere need attlas installed and the model's files under the same path.

    Args:
        kept: where the layers go.
        source: folder or file of the model.
        layers: how many it has.
        on: see `run_dask`.
        workers: processes of a local cluster.
        insecure: allow a scheduler on another machine without TLS.
        progress: told how many layers of how many are there.

    Raises:
        UserError: if no scheduler answers or it goes away, or a worker lacks attlas or the files.
    """
    wanted = kept.missing(layers)
    progress(layers - len(wanted), layers)
    if not wanted:
        return
    path = str(source.resolve())
    with dask_client(on, workers, insecure) as client:
        driver = require_workers(client, {__name__}, on)
        told = alike, driver, layer_values, path, kept.digest
        futures = [client.submit(*told, index, kept.context, pure=False) for index in wanted]
        places = {future.key: index for future, index in zip(futures, wanted, strict=True)}
        stream = ended(futures, on, f"finished layers {RESUMES}")
        for done, (future, result) in enumerate(stream, start=layers - len(wanted) + 1):
            kept.write(places[future.key], _values(str(future.status), result, on))
            progress(done, layers)


def layer_values(path: str, digest: str, index: int, context: int) -> dict[str, np.ndarray] | str:
    """What a worker does: one layer of the model that it finds on its own disk.

    Args:
        path: of the model.
        digest: of its files.
        index: of the layer.
        context: n of the certificates.

    Returns:
        Values by name, or in one line why there are none.
    """
    place = Path(path)
    if not place.exists():
        return f"{path} is not there: put the model's files where this machine has them"
    try:
        return layer_weights(_model(path, digest, files_state(place)), index, context)
    except UserError as error:
        return str(error)


@cache
def _model(path: str, digest: str, state: tuple[object, ...]) -> TrainedTransformer:
    """The model, read once for all layers of a worker while its files stay as they are."""
    del state
    if files_digest(Path(path)) != digest:
        raise UserError(f"{path} holds other files there than here: copy the model's files anew")
    return load_model(path)


def _values(
    status: str, result: dict[str, np.ndarray] | str | tuple[object, ...], on: str
) -> dict[str, np.ndarray]:
    if isinstance(result, dict):
        return result
    if isinstance(result, str):
        raise UserError(f"a worker of {on} says: {result}")
    # With `raise_errors=False` the result of a failed task is (type, exception, traceback).
    raise UserError(f"dask gave a layer up ({status}): {result[1]}")
