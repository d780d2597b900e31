"""What tests a finding: the loss of sequences that did not choose it, with heads replaced."""

from attlas.audit.change import Change, Heads, Intervene, tested_change
from attlas.audit.deep_level.ablation import JointAblation
from attlas.audit.sequence_loss import JudgedBatch
from attlas.transformers.trained_transformer import TrainedTransformer


def intervention(model: TrainedTransformer, batch: JudgedBatch | None) -> Intervene | None:
    """What replaces heads and reads the loss of the sequences that are held out.

    Returns:
        None without sequences, which alone have a loss.
    """
    if batch is None:
        return None

    ablation: list[JointAblation] = []  # made when a finding asks for the first one

    def intervene(heads: Heads, replacement: str) -> Change:
        ablation.extend([] if ablation else [JointAblation(model, batch)])
        before, after = ablation[0](heads, replacement)
        return tested_change(before, after, batch.unit, "sequences")

    return intervene
