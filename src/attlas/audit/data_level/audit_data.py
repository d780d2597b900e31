r"""Level data: what the heads do on the sequences that a user hands in.

Layer by layer, block by block: no attention map outlives its block. The unit of every interval
is the sequence.
"""

from collections.abc import Callable, Sequence

from attlas.audit.data_level.data_pass import AuditedData, DataPass
from attlas.audit.data_level.data_settings import DataSettings, require_settings
from attlas.audit.data_level.sequence_blocks import enclosing_tokens, read_sequences
from attlas.core.arrays import ArrayInput, precision_of
from attlas.transformers.trained_transformer import TrainedTransformer


def audit_data(
    model: TrainedTransformer,
    sequences: Sequence[ArrayInput],
    settings: DataSettings | None = None,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    held_out: Sequence[int] = (),
) -> AuditedData:
    """Concentration, sinks, certificates, attacks, SVMs and redundancy of every head.

    The model runs in its own precision; certificates, attacks and SVMs are computed in float64.

    Args:
        sequences: vectors of token numbers, of any lengths.
        progress: called with the number of layers done, and of all layers.
        held_out: places of sequences that test findings: `choosing` is the table without them.

    Examples:
        See `tests/audit/data_level/test_audit_data.py`.

        >>> DataSettings().sink_tokens
        64
    """
    data_settings = settings or DataSettings()
    require_settings(data_settings)
    tokens = read_sequences(model, sequences)
    special = enclosing_tokens(tokens) if data_settings.special is None else data_settings.special
    with precision_of(model.embedding):
        run = DataPass(model, tokens, special, data_settings, held_out)
        for index in range(model.layers):
            run.pass_layer(index)
            progress(index + 1, model.layers)
        return run.result()
