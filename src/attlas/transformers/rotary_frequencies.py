r"""Frequencies of rotary positions, as configurations ask for them."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from attlas._files.budget import MOST_TURNING
from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings, require_settings

_SCALED = ("attention_factor", "factor")
_RULES = {
    "default": Settings(required={"factor": 1.0}),
    "linear": Settings(read=("factor",)),
    "dynamic": Settings(unused=("factor",)),  # of contexts that are longer than those we read
    "llama3": Settings(read=("factor", "high_freq_factor", "low_freq_factor")),
    "yarn": Settings(
        read=(*_SCALED, "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")
    ),
    "longrope": Settings(read=(*_SCALED, "short_factor"), unused=("long_factor",)),
}
_EVERY_RULE = Settings(
    read=("partial_rotary_factor", "rope_theta", "rope_type", "type"),
    unused=("original_max_position_embeddings",),  # of the rules that do not ask for it
)


class RotaryPositions(NamedTuple):
    """What a rule says.

    Attributes:
        frequencies: angle per position of each pair of coordinates, in float64.
        factor: of the coordinates that turn, in queries and in keys.
        context: number of tokens up to which the frequencies hold; None for any number.
    """

    frequencies: np.ndarray
    factor: float = 1.0
    context: int | None = None


def rotary_rule(config: Configuration, layers: str = "") -> Configuration:
    """The part of a configuration that holds the rule, checked key by key.

    Args:
        layers: the kind of layers, where each kind has a table of its own; `rope_scaling` is that
            of "full_attention".

    Returns:
        `rope_scaling`, the older name, where it is not empty, else `rope_parameters`.

    Raises:
        UserError: if it asks for another rule than those that are read.
    """
    name = "rope_scaling" if config.section("rope_scaling").values else "rope_parameters"
    rule = config.section(name)
    nested = [key for key, value in rule.values.items() if isinstance(value, Mapping)]
    if layers and name == "rope_scaling":
        rule = rule if layers == "full_attention" else Configuration({})
    elif layers and rule.values:
        if layers not in nested:
            raise UserError(
                f"rope_parameters in the configuration has no table '{layers}': correct config.json"
            )
        name, rule = f"{name}.{layers}", rule.section(layers)
    elif nested:
        raise UserError(
            f"{name} with a table '{nested[0]}' in the configuration is not supported: attlas "
            "reads one rule for all layers"
        )
    require_settings(rule.values, _RULES[_kind(rule)], _EVERY_RULE, section=name)
    return rule


def _kind(rule: Configuration) -> str:
    return rule.choice("rope_type" if rule.has("rope_type") else "type", (*_RULES,), "default")


def rotary_frequencies(
    config: Configuration, size: int, *, theta_key: str = "rope_theta"
) -> np.ndarray:
    """The frequencies of a rule without a factor or a limit of tokens, a float64 vector.

    Args:
        config: see `rotary_positions`.
        size: number of coordinates that turn.
        theta_key: older name of the base.

    Raises:
        UserError: if the configuration asks for another rule.

    Examples:
        >>> rotary_frequencies(Configuration({"rope_theta": 100.0}), 4).tolist()
        [1.0, 0.1]
        >>> yarn = {"rope_theta": 100.0, "rope_scaling": {"type": "yarn", "factor": 4.0}}
        >>> rotary_frequencies(Configuration(yarn | {"max_position_embeddings": 64}), 4)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: type = 'yarn' in the configuration is not supported for \
this type of model: attlas reads default, linear, llama3
    """
    positions = rotary_positions(config, size, theta_key=theta_key)
    if positions.factor != 1 or positions.context is not None:
        rule = rotary_rule(config)
        key = "rope_type" if rule.has("rope_type") else "type"
        raise UserError(
            f"{key} = '{_kind(rule)}' in the configuration is not supported for this type of "
            "model: attlas reads default, linear, llama3"
        )
    return positions.frequencies


def rotary_positions(
    config: Configuration,
    size: int,
    *,
    theta_key: str = "rope_theta",
    theta: float = 10000.0,
    layers: str = "",
) -> RotaryPositions:
    r"""Angle per position of each pair of coordinates, and what else the rule says.

    $$\omega_i=\theta^{-2i/r},\quad i<r/2$$

    "linear" divides all by a factor. "llama3" divides those of wavelength above
    original / low_freq_factor by it, leaves those below original / high_freq_factor, and
    interpolates linearly in the number of turns within the original context in between. "yarn"
    interpolates likewise, linearly in i, and multiplies queries and keys by 1 + log(factor) / 10.
    "longrope" divides each pair's by a number of its own, up to the original context: beyond it,
    and for "dynamic", the frequencies depend on the length of the text, which is not read.

    Args:
        config: configuration with `rope_parameters`, or `rope_theta` and `rope_scaling`.
        size: r, number of coordinates that turn.
        theta_key: older name of the base.
        theta: the base where the configuration names none.
        layers: the kind of layers, as in `rotary_rule`.

    Raises:
        UserError: if the configuration asks for another rule, or for more coordinates than any
            model has.

    Source:
        `modeling_rope_utils` of transformers 5; Su et al., RoFormer (2021); Peng et al., YaRN
        (2023); Ding et al., LongRoPE (2024).

    Examples:
        >>> linear = {"rope_theta": 100.0, "rope_scaling": {"type": "linear", "factor": 2}}
        >>> rotary_positions(Configuration(linear), 4).frequencies.tolist()
        [0.5, 0.05]
        >>> dynamic = {"rope_scaling": {"type": "dynamic"}, "max_position_embeddings": 64}
        >>> rotary_positions(Configuration(dynamic), 4).context
        64
    """
    if size > MOST_TURNING:
        raise UserError(
            f"the configuration lets {size} coordinates of a head turn, of at most {MOST_TURNING}: "
            "correct config.json"
        )
    rule = rotary_rule(config, layers)
    base = rule.number("rope_theta", config.number(theta_key, theta))
    return _by_kind(base ** (-np.arange(0, size, 2, dtype=np.float64) / size), rule, config, base)


def _by_kind(
    frequencies: np.ndarray, rule: Configuration, config: Configuration, base: float
) -> RotaryPositions:
    kind = _kind(rule)
    if kind == "linear":
        return RotaryPositions(frequencies / rule.number("factor"))
    if kind == "llama3":
        return RotaryPositions(_llama3(frequencies, rule, _original(config, rule)))
    if kind == "dynamic":
        return RotaryPositions(frequencies, context=config.count("max_position_embeddings"))
    if kind == "yarn":
        return _yarn(frequencies, rule, config, base)
    if kind == "longrope":
        return _longrope(frequencies, rule, config)
    return RotaryPositions(frequencies)


def _original(config: Configuration, rule: Configuration) -> float:
    """The context that the model was first trained for; the configuration's own key goes first."""
    key = "original_max_position_embeddings"
    holder = next((part for part in (config, rule) if part.has(key)), None)
    return holder.number(key) if holder else config.number("max_position_embeddings")


def _llama3(frequencies: np.ndarray, rule: Configuration, original: float) -> np.ndarray:
    turns = original * frequencies / (2 * math.pi)
    low, high = rule.number("low_freq_factor"), rule.number("high_freq_factor")
    if high <= low:
        raise UserError(
            f"high_freq_factor = {high} in the configuration is not above low_freq_factor = {low}: "
            "correct config.json"
        )
    unscaled = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (unscaled + (1 - unscaled) / rule.number("factor")) * frequencies


def _stretch(config: Configuration, rule: Configuration, original: float) -> float:
    """How many times longer the context is than the original one."""
    if rule.has("factor"):
        return rule.number("factor")
    return config.number("max_position_embeddings") / original


def _yarn(
    frequencies: np.ndarray, rule: Configuration, config: Configuration, base: float
) -> RotaryPositions:
    size, original = 2 * frequencies.size, _original(config, rule)
    # The library wants the key, and takes null for the quotient of the two contexts.
    factor = _stretch(config, rule, original) if "factor" in rule.values else rule.number("factor")
    if base <= 1:
        raise UserError(
            f"rope_theta = {base} in the configuration is not above 1: correct config.json"
        )

    def place(turns: float) -> float:
        """The pair that turns so often within the original context."""
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = place(rule.number("beta_fast", 32.0)), place(rule.number("beta_slow", 1.0))
    if rule.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    high += 0.001 if low == high else 0  # as the library does
    divided = np.clip((np.arange(size // 2) - low) / (high - low), 0.0, 1.0)

    def grown(share: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0

    scale = grown(1.0)
    if rule.has("mscale") and rule.has("mscale_all_dim"):
        scale = grown(rule.number("mscale")) / grown(rule.number("mscale_all_dim"))
    return RotaryPositions(
        frequencies * (divided / factor + 1 - divided), rule.number("attention_factor", scale)
    )


def _longrope(
    frequencies: np.ndarray, rule: Configuration, config: Configuration
) -> RotaryPositions:
    original = _original(config, rule)
    divisors = np.array(rule.numbers("short_factor", frequencies.size))
    factor = _stretch(config, rule, original)
    scale = 1.0
    if factor > 1:
        if original <= 1:
            raise UserError(
                f"original_max_position_embeddings = {original} in the configuration is not above "
                "1: correct config.json"
            )
        scale = math.sqrt(1 + math.log(factor) / math.log(original))
    return RotaryPositions(
        frequencies / divisors,
        rule.number("attention_factor", scale),
        max(1, int(min(original, config.number("max_position_embeddings")))),
    )
