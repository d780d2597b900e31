"""Which layers of a model see every token, and which a window."""

from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_kinds(values: Configuration, layers: int, default: tuple[str, ...]) -> tuple[str, ...]:
    """The kind of each layer, as `layer_types` says.

    Args:
        default: the kinds where the configuration has none, repeated over the layers.

    Raises:
        UserError: if a kind is not read, or some layer has none.

    Examples:
        >>> layer_kinds(Configuration({}), 3, (SLIDING, FULL))
        ('sliding_attention', 'full_attention', 'sliding_attention')
    """
    if not values.has("layer_types"):
        return tuple(default[index % len(default)] for index in range(layers))
    kinds = values.values["layer_types"]
    entries = kinds if isinstance(kinds, list | tuple) else ()
    readable = [str(kind) for kind in entries if kind in (FULL, SLIDING)]
    if not len(readable) == len(entries) == layers:
        raise UserError(
            f"layer_types = {kinds!s:.80} in the configuration is not supported: one of {FULL}, "
            f"{SLIDING} for each of the {layers} layers is"
        )
    return tuple(readable)
