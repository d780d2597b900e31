"""Values of a model's configuration file, checked when they are read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attlas.core.errors import UserError


@dataclass(frozen=True)
class Configuration:
    """A model's configuration; every value is asked for by its kind.

    A key whose value is null counts as absent, as in the reference library.

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

    def given(self, key: str) -> bool:
        """Whether the key has a value.

        Args:
            key: of the file.

        Returns:
            Whether it stands there and is not null.
        """
        return self.values.get(key) is not None

    def count(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number.

        Args:
            key: of the file.
            default: where the key is absent; None if the key must be there.
            least: smallest that is allowed.

        Returns:
            The number.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(key, f"a whole number from {least} on")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number above 0.

        Args:
            key: of the file.
            default: where the key is absent; None if the key must be there.

        Returns:
            The number.
        """
        value = self._value(key, default)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not math.isfinite(value) or value <= 0:
            raise self._wrong(key, "a finite number above 0")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false.

        Args:
            key: of the file.
            default: where the key is absent.

        Returns:
            The value.
        """
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def word(self, key: str, default: str | None = None) -> str:
        """A string.

        Args:
            key: of the file.
            default: where the key is absent; None if the key must be there.

        Returns:
            The string.
        """
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a word")
        return value

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of several words.

        Args:
            key: of the file.
            known: the words that are supported.
            default: where the key is absent; None if the key must be there.

        Returns:
            The word.

        Raises:
            UserError: naming key, value and what is supported.
        """
        word = self.word(key, default)
        if word not in known:
            raise UserError(
                f"{key} = '{word}' in the configuration is not supported: attlas reads "
                f"{', '.join(known)}"
            )
        return word

    def section(self, key: str) -> "Configuration":
        """The values below a key.

        Args:
            key: of the file.

        Returns:
            Them; none where the key is absent.
        """
        value = self._value(key, {})
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a table of values")
        return Configuration(value)

    def refuse_unless(self, key: str, allowed: Any) -> None:
        """Stop where the file asks for something else than what is supported.

        Args:
            key: of the file.
            allowed: the one value that is supported, which is also that of an absent key.

        Raises:
            UserError: naming key and value.
        """
        value = self._value(key, allowed)
        if value != allowed:
            raise UserError(
                f"{key} = {value!r} in the configuration is not supported: attlas reads models "
                f"with {key} = {allowed!r}"
            )

    def divides(self, key: str, part: int, whole: int, of: str) -> int:
        """The quotient of two numbers of the file.

        Args:
            key: of the divisor.
            part: the divisor.
            whole: what it divides.
            of: the name of that.

        Returns:
            whole / part.

        Raises:
            UserError: if the division leaves a rest.
        """
        if whole % part:
            raise UserError(
                f"{key} = {part} in the configuration does not divide {of} = {whole}: correct "
                "config.json"
            )
        return whole // part

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise UserError(f"the configuration has no '{key}': add it to config.json")
        return value

    def _wrong(self, key: str, wanted: str) -> UserError:
        return UserError(
            f"{key} = {self.values.get(key)!r} in the configuration is not {wanted}: correct "
            "config.json"
        )
