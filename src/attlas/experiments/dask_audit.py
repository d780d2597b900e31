"""Layers of an audit of level weights as tasks of dask.distributed."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from attlas.audit.weights_level.weights_level import layer_weights
from attlas.core.errors import UserError
from attlas.experiments.compatibility import run_if_compatible
from attlas.experiments.dask_backend import RESUMES, dask_client, ended, require_workers
from attlas.experiments.layer_cache import LayerCache, files_digest, files_state
from attlas.transformers.load_model import load_model
from attlas.transformers.trained_transformer import TrainedTransformer


def compute_layers_on_dask(
    cache: LayerCache,
    source: Path,
    layers: int,
    *,
    on: str,
    workers: int = 2,
    insecure: bool = False,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> None:
    """Compute the layers that the cache lacks on a dask cluster, and store each as it finishes.

    Workers elsewhere need attlas installed and the model's files under the same path. Backend and
    workers are those of `attlas.experiments.dask_backend.run_dask`.

    Args:
        source: folder or file of the model.
        progress: called with the number of finished layers and of all layers.

    Raises:
        UserError: if no scheduler answers or it goes away, or a worker lacks attlas or the files.
    """
    wanted = cache.missing(layers)
    progress(layers - len(wanted), layers)
    if not wanted:
        return
    path = str(source.resolve())
    with dask_client(on, workers, insecure) as client:
        driver = require_workers(client, {__name__}, on)
        call = run_if_compatible, driver, layer_values, path, cache.digest
        futures = [client.submit(*call, index, cache.context, pure=False) for index in wanted]
        places = {future.key: index for future, index in zip(futures, wanted, strict=True)}
        stream = ended(futures, on, f"finished layers {RESUMES}")
        for done, (future, result) in enumerate(stream, start=layers - len(wanted) + 1):
            cache.write(places[future.key], _values(str(future.status), result, on))
            progress(done, layers)


def layer_values(path: str, digest: str, index: int, context: int) -> dict[str, np.ndarray] | str:
    """Compute one layer of the model on the worker's disk; returns its values or an error line.

    Examples:
        >>> layer_values("/no/model", "", 0, 8)
        "/no/model does not exist there: copy the model's files to the same path"
    """
    place = Path(path)
    if not place.exists():
        return f"{path} does not exist there: copy the model's files to the same path"
    try:
        return layer_weights(_model(path, digest, files_state(place)), index, context)
    except UserError as error:
        return str(error)


@cache
def _model(path: str, digest: str, state: tuple[object, ...]) -> TrainedTransformer:
    """The model, read once for all layers of a worker while its files stay as they are."""
    del state
    if files_digest(Path(path)) != digest:
        raise UserError(f"{path} holds other files there than here: copy the model's files again")
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
