"""A copy of a model's folder in which blocks of output projections are zero.

Nothing else of the files changes, not even the type of their numbers: bytes of the blocks are set
to zero. Which tensor holds the output projection of a layer is read off its numbers.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attlas._files.file_changes import make_folder, write_file
from attlas.core.errors import UserError
from attlas.transformers.safetensors_file import SafetensorsFile, StoredTensor

_BESIDE = (".json", ".txt", ".model", ".jinja", ".md")
"""Ends of the files that are copied beside the weights: tokenizers and configurations."""
_SAME = 1e-6
"""Largest relative difference of a tensor from the matrix that was read from it."""
_PIECE = 2**22

Blocks = Mapping[int, tuple[Float[np.ndarray, "H v out"], Sequence[int]]]
"""By layer: the output projection of its heads, and the heads whose blocks become zero."""


def write_pruned_folder(source: Path, target: Path, blocks: Blocks) -> list[str]:
    """Write the folder of a model without some heads, which transformers loads like the first.

    Args:
        source: folder with config.json and .safetensors files.
        target: a new folder.
        blocks: matrices and heads of the layers that change.

    Returns:
        Names of the tensors that changed.

    Raises:
        UserError: if the target has files, or an output projection is in no file of the folder, in
            several tensors, or shared by layers that do not lose the same heads.
    """
    require_new_folder(target)
    files = [SafetensorsFile(path) for path in sorted(source.glob("*.safetensors"))]
    places = _places(files, blocks, source)
    make_folder(target)
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix in _BESIDE:
            write_file(target / path.name, _pieces(path, []))
    for file in files:
        ranges = [
            zero
            for name, (owner, layer, inputs_first) in places.items()
            if owner is file
            for zero in _ranges(file.tensors[name], *blocks[layer], inputs_first)
        ]
        write_file(target / file.path.name, _pieces(file.path, sorted(ranges)))
    return sorted(places)


def require_new_folder(target: Path) -> None:
    """Check that a folder can be written without replacing anything.

    Raises:
        UserError: if there is something of that name, other than an empty folder.

    Examples:
        >>> require_new_folder(Path("/never/made"))
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{target} is there already: name a new folder")


def _places(
    files: Sequence[SafetensorsFile], blocks: Blocks, source: Path
) -> dict[str, tuple[SafetensorsFile, int, bool]]:
    """By tensor: the file that has it, a layer whose output projection it is, and its storage."""
    places: dict[int, list[tuple[SafetensorsFile, str, bool]]] = {layer: [] for layer in blocks}
    stacked = {
        layer: np.asarray(W, np.float64).reshape(-1, W.shape[2]) for layer, (W, _) in blocks.items()
    }
    for file in files:
        for name, tensor in file.tensors.items():
            shapes = {each.shape for each in stacked.values()}
            if not shapes & {tensor.shape, tensor.shape[::-1]}:
                continue
            values = file.read(name, np.dtype(np.float64))
            for layer, W in stacked.items():
                for inputs_first in (True, False):
                    stored = W if inputs_first else W.T
                    if values.shape == stored.shape and _equal(values, stored):
                        places[layer].append((file, name, inputs_first))
                        break
    owners: dict[str, tuple[SafetensorsFile, int, bool]] = {}
    for layer, found in places.items():
        if len(found) != 1:
            kind = "in several tensors" if found else "in no tensor"
            raise UserError(
                f"{source.name}: the output projection of layer {layer} is {kind} of the folder, "
                "so that heads cannot be removed from its files"
            )
        ((file, name, inputs_first),) = found
        first = owners.setdefault(name, (file, layer, inputs_first))[1]
        if set(blocks[first][1]) != set(blocks[layer][1]):
            raise UserError(
                f"{source.name}: layers {first} and {layer} share their output projection: remove "
                "the same heads from both"
            )
    return owners


def _equal(values: np.ndarray, stored: np.ndarray) -> bool:
    return bool(np.abs(values - stored).max() <= _SAME * np.abs(stored).max())


def _ranges(
    tensor: StoredTensor,
    W: Float[np.ndarray, "H v out"],
    heads: Sequence[int],
    inputs_first: bool,
) -> Iterator[tuple[int, int]]:
    """Bytes of the file that hold the blocks of some heads."""
    size, row = W.shape[1], tensor.shape[1] * tensor.dtype.itemsize
    for head in heads:
        if inputs_first:
            yield tensor.start + head * size * row, tensor.start + (head + 1) * size * row
            continue
        width = size * tensor.dtype.itemsize
        for output in range(tensor.shape[0]):
            start = tensor.start + output * row + head * width
            yield start, start + width


def _pieces(path: Path, ranges: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """The content of a file with zeros in some ranges, piece by piece."""
    stops = [stop for _, stop in ranges]
    with path.open("rb") as file:
        place = 0
        while piece := bytearray(file.read(_PIECE)):
            for start, stop in ranges[bisect_right(stops, place) :]:
                if start >= place + len(piece):
                    break
                first, last = max(start, place) - place, min(stop - place, len(piece))
                piece[first:last] = bytes(last - first)
            place += len(piece)
            yield bytes(piece)
