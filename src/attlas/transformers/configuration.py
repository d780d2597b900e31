"""Values of a model's configuration file, checked when they are read."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attlas._files.budget import MOST_LAYERS
from attlas.core.errors import UserError

_LARGEST = 2**40


@dataclass(frozen=True)
class Configuration:
    """A model's configuration; every value is read by its type.

    A key whose value is null counts as absent, as in the reference library: it has the default, and
    without one it is required.

    Attributes:
        values: the parsed file.

    Examples:
        >>> Configuration({"hidden_size": 64}).count("hidden_size")
        64
        >>> Configuration({"hidden_size": "64"}).count("hidden_size")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: hidden_size = '64' in the configuration is not a whole \
number from 1 on: correct config.json
    """

    values: Mapping[str, Any]

    def has(self, key: str) -> bool:
        """Whether the key has a value."""
        return self.values.get(key) is not None

    def count(
        self, key: str, default: int | None = None, *, least: int = 1, most: int = _LARGEST
    ) -> int:
        """A whole number from `least` to `most`."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(key, f"a whole number from {least} on")
        if value > most:
            raise self._wrong(key, f"at most {most}")
        return value

    def layers(self, key: str, default: int | None = None) -> int:
        """A number of layers, each of which is made before the file is compared with it."""
        return self.count(key, default, most=MOST_LAYERS)

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number above 0."""
        value = self._value(key, default)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not 0 < value <= sys.float_info.max:
            raise self._wrong(key, "a finite number above 0")
        return float(value)

    def numbers(self, key: str, size: int) -> tuple[float, ...]:
        """A list of so many finite numbers above 0."""
        value = self._value(key, None)
        if not isinstance(value, list | tuple) or len(value) != size:
            raise self._wrong(key, f"a list of {size} numbers")
        return tuple(Configuration({key: each}).number(key) for each in value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def word(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a string")
        return value

    def choice(self, key: str, supported: Sequence[str], default: str | None = None) -> str:
        """One of several strings.

        Raises:
            UserError: naming key, value and what is supported.
        """
        word = self.word(key, default)
        if word not in supported:
            raise UserError(
                f"{key} = '{word:.80}' in the configuration is not supported: attlas reads "
                f"{', '.join(supported)}"
            )
        return word

    def section(self, key: str) -> "Configuration":
        """The values below a key; none where it is absent."""
        value = self._value(key, {})
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a table of values")
        return Configuration(value)

    def heads_by_layer(self, key: str, layers: int, heads: int) -> dict[int, tuple[int, ...]]:
        """Numbers of heads by layer, ascending, as transformers writes pruned ones.

        Examples:
            >>> Configuration({"pruned_heads": {"1": [2, 0]}}).heads_by_layer("pruned_heads", 2, 3)
            {1: (0, 2)}
        """
        by_layer: dict[int, tuple[int, ...]] = {}
        wanted = f"heads below {heads} by layer below {layers}"
        for layer, numbers in self.section(key).values.items():
            if str(layer) not in map(str, range(layers)) or not isinstance(numbers, list | tuple):
                raise self._wrong(key, wanted)
            if not all(type(head) is int and 0 <= head < heads for head in numbers):
                raise self._wrong(key, wanted)
            if numbers:
                by_layer[int(layer)] = tuple(sorted(set(numbers)))
        return by_layer

    def refuse_unless(self, key: str, allowed: Any) -> None:
        """Stop where the file asks for an unsupported value.

        Args:
            allowed: the one value that is supported, which is also that of an absent key.

        Raises:
            UserError: naming key and value.
        """
        value = self._value(key, allowed)
        if value != allowed:
            raise UserError(
                f"{key} = {value!r:.80} in the configuration is not supported: attlas reads models "
                f"with {key} = {allowed!r}"
            )

    def divides(self, key: str, part: int, total: int, of: str) -> int:
        """How many times the number `part` of a key goes into the number `total` of the key `of`.

        Raises:
            UserError: if the division leaves a rest.
        """
        if total % part:
            raise UserError(
                f"{key} = {part} in the configuration does not divide {of} = {total}: correct "
                "config.json"
            )
        return total // part

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise UserError(f"the configuration has no '{key}': add it to config.json")
        return value

    def _wrong(self, key: str, wanted: str) -> UserError:
        return UserError(
            f"{key} = {self.values.get(key)!r:.80} in the configuration is not {wanted}: correct "
            "config.json"
        )


class ChangedConfiguration(Mapping[str, Any]):
    """A configuration in which some keys have other values; null takes one away.

    Args:
        config: the parsed file.
        **changes: the other values.

    Examples:
        >>> Configuration(ChangedConfiguration({"width": 3, "heads": 2}, heads=4)).count("heads")
        4
    """

    def __init__(self, config: Mapping[str, Any], **changes: Any) -> None:
        self._config, self._changes = config, changes

    def __getitem__(self, key: str) -> Any:
        return self._changes[key] if key in self._changes else self._config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config.keys() | self._changes.keys())

    def __len__(self) -> int:
        return len(self._config.keys() | self._changes.keys())
