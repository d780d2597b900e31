"""How level data of the audit is made."""

from typing import NamedTuple

from attlas.core.errors import UserError


class DataSettings(NamedTuple):
    """How the audit is made.

    Attributes:
        special: numbers of the special tokens; those that open or close all sequences when None.
        sink_tokens: T of the sink protocol, to which sequences are cut; sequences that are
            shorter are left out there. Where less than half are as long, what half reach.
        sink_sequences: how many sequences the protocol takes.
        probes: how many of these the certificates and attacks take.
        svm_sequences: how many of the probes the attention SVM takes.
        svm_rows: rows of each that are constraints of the attention SVM.
        local_steps: of the attack at the tokens.
        ball_steps: of the attack in the ball.
        pair_rows: rows per sequence by which heads are compared with each other.
        pair_heads: heads of the model up to which pairs of different layers are compared.
        draws: of the bootstrap.
        level: of its intervals.
    """

    special: tuple[int, ...] | None = None
    sink_tokens: int = 64
    sink_sequences: int = 32
    probes: int = 4
    svm_sequences: int = 2
    svm_rows: int = 4
    local_steps: int = 30
    ball_steps: int = 30
    pair_rows: int = 8
    pair_heads: int = 300
    draws: int = 1000
    level: float = 0.95
    seed: int = 0


def require_settings(settings: DataSettings) -> None:
    """Check that the settings leave something to count.

    Raises:
        UserError: naming the setting.
    """
    sizes = ("sink_tokens", "sink_sequences", "probes", "svm_sequences", "svm_rows", "pair_rows")
    for name in (*sizes, "local_steps", "ball_steps", "pair_heads"):
        if (value := getattr(settings, name)) < 1:
            raise UserError(f"{name} = {value}: give at least 1")
