r"""Guarantees on the bits that language models need for the tokens of a text.

Tokens of a text are not independent. What is guaranteed is the mean over its positions of the
expected bits, given the tokens before: deviations from it are differences of a martingale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.risk_bound import CODE_BEFORE, FIXED_BEFORE, RiskBound
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.certificates.document import level, packaged_schema
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError, refuse_unreadable

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class StreamGuarantee:
    """The certificate of one language model on one text.

    Attributes:
        bound: in bits per token, `trivial` the uniform law's.
        bits: bits of all tokens as the model gives them, without a guarantee.
        bytes: length of the text in UTF-8.
        passes: whether the bits per token are certified to be at most those that were asked for;
            None where none were.
    """

    model: str
    bound: RiskBound
    bits: float
    bytes: int
    passes: bool | None

    @property
    def bits_per_byte(self) -> float:
        """The bound for all tokens over the bytes of this text."""
        return self.bound.bound * self.bound.n / self.bytes

    @property
    def measured_per_token(self) -> float:
        """Bits of this text over its tokens, without a guarantee."""
        return self.bits / self.bound.n

    @property
    def measured_per_byte(self) -> float:
        """Bits of this text over its bytes, without a guarantee."""
        return self.bits / self.bytes


@refuse_unreadable
def stream_guarantee(
    model: str,
    probabilities: ArrayInput,
    vocabulary: int,
    size: int,
    delta: float,
    *,
    at_most: float | None = None,
) -> StreamGuarantee:
    """How many bits per token of a text a model needs, at most.

    The model was fixed before the text: `token_bound` with a code of 0 bits.

    Args:
        model: name in tables.
        probabilities: those of the tokens that came, in their order, of shape [N].
        vocabulary: number of tokens that there are.
        size: bytes of the text.
        delta: probability of failure, in (0, 1).
        at_most: bits per token that the model shall need at most.

    Raises:
        UserError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> found = stream_guarantee("mine", np.full(10_000, 0.5), 512, 40_000, 0.05)
        >>> print(f"{found.bound.bound:.3f} {found.bits_per_byte:.3f} {found.measured_per_byte}")
        1.030 0.258 0.25
    """
    require_delta(delta)
    if size < 1:
        raise UserError(f"size = {size} bytes: the text must not be empty")
    if at_most is not None and not 0 < at_most < math.inf:
        raise UserError(f"at_most = {at_most}: give bits per token, above 0")
    (p,) = read_arrays("N", np.float64, probabilities=probabilities)
    bound = token_bound(p, vocabulary, 0, delta)
    # A code of 0 bits has one file: the model itself was fixed before.
    conditions = (FIXED_BEFORE if c == CODE_BEFORE else c for c in bound.conditions)
    bound = replace(bound, conditions=tuple(conditions))
    with np.errstate(divide="ignore"):
        bits = float(-np.log2(p).sum())
    passes = None if at_most is None else bool(bound.bound <= at_most)
    return StreamGuarantee(model, bound, bits, size, passes)


@refuse_unreadable
def stream_json(several: Sequence[StreamGuarantee], at_most: float | None) -> dict[str, Any]:
    """Guarantees on one text as a JSON document, which `stream_schema` describes.

    Args:
        several: guarantees of models, which hold together.
        at_most: bits per token that were asked for, or None.

    Examples:
        >>> import numpy as np
        >>> found = stream_guarantee("mine", np.full(10_000, 0.5), 512, 40_000, 0.05)
        >>> stream_json([found], None)["models"][0]["tokens"]
        10000
    """
    return {
        "schema": SCHEMA_VERSION,
        "delta": math.fsum(guarantee.bound.delta for guarantee in several),
        "at_most": at_most,
        "passes": _passes(several),
        "models": [
            {
                "model": guarantee.model,
                "tokens": guarantee.bound.n,
                "bytes": guarantee.bytes,
                "bits_per_token": guarantee.bound.bound,
                "bits_per_byte": guarantee.bits_per_byte,
                "measured_per_token": _finite(guarantee.measured_per_token),
                "measured_per_byte": _finite(guarantee.measured_per_byte),
                "uniform": guarantee.bound.trivial,
                "share": guarantee.bound.delta,
                "passes": guarantee.passes,
                "assumed": [c.text for c in guarantee.bound.conditions if not c.checked],
                "checked": [c.text for c in guarantee.bound.conditions if c.checked],
            }
            for guarantee in several
        ],
        "sentences": stream_sentences(several),
    }


@cache
def stream_schema() -> dict[str, Any]:
    """The JSON schema of `stream_json`.

    Examples:
        >>> stream_schema()["properties"]["schema"]
        {'const': 1}
    """
    return packaged_schema("stream")


@refuse_unreadable
def stream_rows(
    several: Sequence[StreamGuarantee],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and cells of the table of guarantees on a text.

    Examples:
        >>> import numpy as np
        >>> found = stream_guarantee("mine", np.full(10_000, 0.5), 512, 40_000, 0.05)
        >>> stream_rows([found])[1]
        [('mine', '1.031', '1.000', '9.000', '0.258', '0.250', '10,000')]
    """
    headings = (
        "model", "bits per token at most", "measured", "uniform", "bits per byte at most",
        "measured", "tokens",
    )  # fmt: skip
    rows = [
        (
            guarantee.model,
            bits_text(guarantee.bound.bound),
            f"{guarantee.measured_per_token:.3f}",
            f"{guarantee.bound.trivial:.3f}",
            bits_text(guarantee.bits_per_byte),
            f"{guarantee.measured_per_byte:.3f}",
            f"{guarantee.bound.n:,}",
        )
        for guarantee in several
    ]
    return headings, rows


@refuse_unreadable
def stream_sentences(several: Sequence[StreamGuarantee]) -> list[str]:
    """What is guaranteed, and what it rests on.

    Examples:
        >>> import numpy as np
        >>> found = stream_guarantee("mine", np.full(10_000, 0.5), 512, 40_000, 0.05)
        >>> stream_sentences([found])[1]
        'Measured with the prediction as it is: 1.000 bits per token, 0.250 per byte.'
    """
    lines = []
    for guarantee in several:
        lines += [
            f"With probability {level(1 - guarantee.bound.delta)}, '{guarantee.model}' needs on "
            f"average over the {guarantee.bound.n:,} tokens of this text at most "
            f"{bits_text(guarantee.bound.bound)} expected bits per token, given the tokens "
            f"before, which are {bits_text(guarantee.bits_per_byte)} per byte.",
            "Measured with the prediction as it is: "
            f"{guarantee.measured_per_token:.3f} bits per token, "
            f"{guarantee.measured_per_byte:.3f} per byte.",
        ]
    conditions = [c for guarantee in several for c in guarantee.bound.conditions]
    assumed = dict.fromkeys(c.text for c in conditions if not c.checked)
    return [
        *lines,
        "The bound is that of the prediction mixed with the uniform law, whose share was chosen "
        "and is paid for. Tokenisers differ: compare models by bits per byte.",
        f"Assumed, and not checked: {'; '.join(assumed)}.",
    ]


def _passes(several: Sequence[StreamGuarantee]) -> bool | None:
    outcomes = [guarantee.passes for guarantee in several if guarantee.passes is not None]
    return any(outcomes) if outcomes else None


def bits_text(number: float) -> str:
    """Bits with three digits behind the point, rounded up.

    Examples:
        >>> bits_text(1.0301)
        '1.031'
    """
    return f"{math.ceil(number * 1000 - 1e-9) / 1000:.3f}"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
