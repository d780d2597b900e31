r"""A torch classifier that is trained in few numbers, and certified from its training set alone.

The weights are $w=w^0+Pz$ with few coordinates z. Rounded and coded, z is a short file, and
Occam's bound holds for all such files at once.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from attlas.bounds.generalisation.compression_bound import DECODED, compression_bound
from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.occam_code import (
    LARGEST_LEVELS,
    decode,
    decode_number,
    encode,
    encode_number,
)
from attlas.bounds.generalisation.risk_bound import Condition, RiskBound
from attlas.core.errors import UserError
from attlas.core.finite import require_finite
from attlas.core.ranges import whole_number
from attlas.torch.counted_errors import Errors, counted_errors, labelled_batches
from attlas.torch.random_subspace import LARGEST_SEED, random_subspace

LEVELS = (1, 2, 3, 5, 8, 15)
"""Roundings that are compared: to 3, 5, ... and 31 values."""
PROBE = 2000
"""Examples on which the rounding is chosen."""
START = Condition(
    "the module and the weights that it started from were fixed before the examples", False
)
UNCHANGED = Condition("weights and buffers outside of the subspace are those of the start", True)


class SubspaceAdapter(nn.Module):
    r"""A module whose trainable weights move in a random subspace of few dimensions.

    $$w_j=w_j^0+\frac{\sigma_j}{\sqrt{N_{t(j)}}}z_{h(j)}$$

    $N_t$ is the number of weights of the tensor t, so that coordinates of size c move each tensor
    by c in the Frobenius norm; h and the signs are those of `random_subspace`. What moves are the
    parameters that require gradients when the adapter is made: freeze the others first. So LoRA,
    as PEFT adds it, or the last layers of a pretrained encoder are trained in a subspace too. The
    module's own parameters are never written: `adapter.coordinates` is what an optimiser trains,
    and Adam at a rate of about 0.1 is a start.

    `certificate` rounds the coordinates, writes them with the seed into a file that decodes to
    them, and bounds the risk of the decoded model. All that was chosen after the examples had been
    seen is in the file or free: dimensions, seed, rounding, and everything about the training. What
    is not, must have been fixed before: the module, its weights at the start and which of them
    move.

    Args:
        module: a classifier; see `counted_errors` for what it returns.
        dimensions: number of coordinates; 100 to 1000 are usual.
        seed: a whole number that fixes the subspace.
        levels: L, where training rounds already: in training mode the module sees coordinates of
            2L + 1 values, and gradients pass through the rounding. None: the full numbers.

    Attributes:
        coordinates: z, zero at the start.
        file: of the last certificate, or None.

    Raises:
        UserError: if nothing requires a gradient, or a number is not whole or out of range.

    Source: random subspaces of Li et al. (2018), coded for a bound as by Lotfi et al. (2022).

    Examples:
        >>> draw = torch.Generator().manual_seed(0)
        >>> X = torch.randn(2000, 20, generator=draw)
        >>> y = (X[:, 0] + X[:, 1] > 0).long()
        >>> start = nn.Linear(20, 2)
        >>> for weights in start.parameters():
        ...     weights = nn.init.zeros_(weights)
        >>> adapter = SubspaceAdapter(start, dimensions=40)
        >>> optimizer = torch.optim.Adam([adapter.coordinates], 0.1)
        >>> for _ in range(50):
        ...     optimizer.zero_grad()
        ...     nn.functional.cross_entropy(adapter(X), y).backward()
        ...     loss = optimizer.step()
        >>> bound = adapter.certificate([(X, y)], delta=0.05)
        >>> bound.vacuous, bound.bound < 0.25, bound.trivial
        (False, True, 0.5)
        >>> again = SubspaceAdapter.decoded(start, adapter.file)
        >>> again.errors([(X, y)]).errors / 2000 == bound.empirical
        True
    """

    coordinates: nn.Parameter
    places: Tensor
    steps: Tensor

    def __init__(
        self, module: nn.Module, dimensions: int = 200, *, seed: int = 0, levels: int | None = None
    ) -> None:
        super().__init__()
        self.module = module
        self.file: bytes | None = None
        self.levels = None if levels is None else whole_number(levels, "levels", 1, LARGEST_LEVELS)
        self.seed = whole_number(seed, "seed", 0, LARGEST_SEED)
        self._moving = {
            name: weights.shape
            for name, weights in module.named_parameters()
            if weights.requires_grad and weights.numel()
        }
        if not self._moving:
            raise UserError(
                f"{type(module).__name__} has no parameter that requires a gradient: nothing moves"
            )
        sizes = [shape.numel() for shape in self._moving.values()]
        places, signs = random_subspace(sum(sizes), dimensions, seed)
        lengths = np.repeat(1 / np.sqrt(np.array(sizes, np.float64)), sizes)
        device = next(module.parameters()).device
        self.coordinates = nn.Parameter(torch.zeros(dimensions, device=device))
        steps = torch.from_numpy((signs * lengths).astype(np.float32))
        self.register_buffer("places", torch.from_numpy(places).to(device), persistent=False)
        self.register_buffer("steps", steps.to(device), persistent=False)
        self._digests = dict(_digests(module))

    def forward(self, *arguments: Any, **keywords: Any) -> Any:
        """What the module returns at the moved weights."""
        moved = self.coordinates
        if self.training and self.levels is not None:
            rounded = self._read(self._written(self.levels))
            moved = moved + (rounded - moved).detach()
        change = moved.index_select(0, self.places) * self.steps
        start = dict(self.module.named_parameters())
        parts = change.split([shape.numel() for shape in self._moving.values()])
        weights = {
            name: start[name].detach() + part.view(shape).to(start[name].dtype)
            for (name, shape), part in zip(self._moving.items(), parts, strict=True)
        }
        return functional_call(self.module, weights, arguments, keywords)

    def errors(self, data: Iterable[Any]) -> Errors:
        """Errors in evaluation mode, as `counted_errors` counts them.

        With examples that were not trained on, `at.held_out_bound(errors, n, delta)` is the bound
        to stand beside.
        """
        return counted_errors(self, data, self.coordinates.device)

    def certificate(
        self,
        data: Iterable[Any],
        *,
        delta: float = 0.05,
        levels: Sequence[int] | None = None,
        probe: int = PROBE,
    ) -> RiskBound:
        r"""The risk of the model that a file of b bits decodes to, from its training examples.

        $$\sup\{p:\mathbb P({\rm Bin}(n,p)\le k)\ge2^{-b}\delta\}$$

        Afterwards the adapter *is* the certified model: its coordinates are those of
        `adapter.file`, and further certificates without `levels` are about this file.

        Args:
            data: all training examples, each once, as `labelled_batches` takes them.
            delta: probability that the bound fails.
            levels: roundings to choose from, as the file says which; those of training, or
                `LEVELS`, where None.
            probe: number of examples on which they are compared, by their bounds.

        Returns:
            The exact binomial form of `compression_bound`; guessing is trivial.

        Raises:
            UserError: if data can be read only once or do not fit the model, or another weight or
                buffer of the module was changed.

        Source: Theorem 4.6 of Langford (2005); papers/attlas_bounds/proofs/bounds.md.
        """
        require_delta(delta)
        if iter(data) is data:
            raise UserError("data can be read only once: give a loader or a list of batches")
        self._require_start()
        if levels is None and self.file is not None and self._is_file(self.file):
            files = [self.file]
        else:
            choices = levels or ((self.levels,) if self.levels is not None else LEVELS)
            files = [self._written(number) for number in choices]
        if len(files) > 1:
            files = [self._best(files, data, delta, whole_number(probe, "probe", 1, 2**31))]
        self._take(files[0])
        counts = self.errors(data)
        bound = compression_bound(
            counts.errors / counts.n,
            counts.n,
            8 * len(files[0]),
            delta,
            form="binomial",
            trivial=1 - 1 / counts.classes,
        )
        assumed = [condition for condition in bound.conditions if condition.text != DECODED.text]
        checked = (Condition(DECODED.text, True), START, UNCHANGED)
        return replace(bound, conditions=(*assumed, *checked))

    @classmethod
    def decoded(cls, module: nn.Module, file: bytes) -> "SubspaceAdapter":
        """The certified model, from the module at its start and the file of a certificate.

        Raises:
            UserError: if the file is not one, or the module has fewer weights than its coordinates.
        """
        seed, z = _decoded(file)
        adapter = cls(module, z.size, seed=seed)
        adapter._take(file)
        return adapter

    def _best(self, files: list[bytes], data: Iterable[Any], delta: float, probe: int) -> bytes:
        """The file of the least bound, were its errors those on the first examples."""
        n, few = 0, []
        for inputs, labels in labelled_batches(data):
            if n < probe:
                few.append((inputs, labels))
            n += len(labels)

        def estimate(file: bytes) -> float:
            self._take(file)
            counts = self.errors(few)
            nats = 8 * len(file) * math.log(2) - math.log(delta)
            return kl_upper_inverse(counts.errors / counts.n, nats / n)

        full = self.coordinates.detach().clone()
        try:
            return min(files, key=estimate)
        finally:
            self.coordinates.data.copy_(full)

    def _written(self, levels: int) -> bytes:
        z = self.coordinates.detach().float().cpu().numpy()
        require_finite(z, "coordinates")
        return encode_number(self.seed) + encode([z], levels, nearest=True)

    def _read(self, file: bytes) -> Tensor:
        return torch.from_numpy(_decoded(file)[1]).to(self.coordinates)

    def _is_file(self, file: bytes) -> bool:
        return torch.equal(self._read(file), self.coordinates)

    @torch.no_grad()
    def _take(self, file: bytes) -> None:
        self.coordinates.copy_(self._read(file))
        self.file = file

    def _require_start(self) -> None:
        now = dict(_digests(self.module))
        changed = [name for name, digest in self._digests.items() if now.get(name) != digest]
        if changed or len(now) != len(self._digests):
            name = changed[0] if changed else "a tensor"
            raise UserError(
                f"'{name}' of the module changed since the adapter was made, and the file does not "
                "hold it: train the coordinates alone, and keep layers that learn in passing "
                "(batch norm) in evaluation mode"
            )


def _decoded(file: bytes) -> tuple[int, np.ndarray]:
    seed, place = decode_number(file, 0)
    arrays = decode(file[place:])
    if len(arrays) != 1 or arrays[0].ndim != 1:
        raise UserError("the file holds other arrays than coordinates: give one of `adapter.file`")
    return seed, arrays[0]


def _digests(module: nn.Module) -> Iterator[tuple[str, bytes]]:
    """Of every parameter and buffer, by name."""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        numbers = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        yield name, hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()
