r"""Frequencies of rotary positions, as configurations ask for them."""

import math
from collections.abc import Mapping

import numpy as np

from attlas._files.budget import MOST_TURNING
from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings, require_settings

_RULES = {
    "default": Settings(required={"factor": 1.0}),
    "linear": Settings(read=("factor",)),
    "llama3": Settings(read=("factor", "high_freq_factor", "low_freq_factor")),
}
_EVERY_RULE = Settings(
    read=("partial_rotary_factor", "rope_theta", "rope_type", "type"),
    unused=("original_max_position_embeddings",),  # of the rules that do not ask for it
)


def rotary_rule(config: Configuration) -> Configuration:
    """The part of a configuration that holds the rule, checked key by key.

    Returns:
        `rope_scaling`, the older name, where it is not empty, else `rope_parameters`.

    Raises:
        UserError: if it asks for another rule than those that are read.
    """
    name = "rope_scaling" if config.section("rope_scaling").values else "rope_parameters"
    rule = config.section(name)
    nested = [key for key, value in rule.values.items() if isinstance(value, Mapping)]
    if nested:
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
    r"""Angle per position of each pair of coordinates, a float64 vector.

    $$\omega_i=\theta^{-2i/r},\quad i<r/2$$

    "linear" divides all by a factor. "llama3" divides those of wavelength above
    original / low_freq_factor by it, leaves those below original / high_freq_factor, and
    interpolates linearly in the number of turns within the original context in between.

    Args:
        config: configuration with `rope_parameters`, or `rope_theta` and `rope_scaling`.
        size: r, number of coordinates that turn.
        theta_key: older name of the base.

    Raises:
        UserError: if the configuration asks for another rule, or for more coordinates than any
            model has.

    Source:
        `modeling_rope_utils` of transformers 5; Su et al., RoFormer (2021).

    Examples:
        >>> rotary_frequencies(Configuration({"rope_theta": 100.0}), 4).tolist()
        [1.0, 0.1]
        >>> rotary_frequencies(Configuration({"rope_scaling": {"type": "yarn", "factor": 4}}), 4)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: type = 'yarn' in the configuration is not ...
    """
    if size > MOST_TURNING:
        raise UserError(
            f"the configuration lets {size} coordinates of a head turn, of at most {MOST_TURNING}: "
            "correct config.json"
        )
    rule = rotary_rule(config)
    kind = _kind(rule)
    theta = rule.number("rope_theta", config.number(theta_key, 10000.0))
    frequencies = theta ** (-np.arange(0, size, 2, dtype=np.float64) / size)
    if kind == "linear":
        return frequencies / rule.number("factor")
    if kind == "llama3":
        key = "original_max_position_embeddings"
        holder = next((part for part in (config, rule) if part.has(key)), None)
        original = holder.number(key) if holder else config.number("max_position_embeddings")
        return _llama3(frequencies, rule, original)
    return frequencies


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
