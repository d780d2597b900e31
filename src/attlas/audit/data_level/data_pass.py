"""One pass of a batch through the layers: what is observed on the way, as tables."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from attlas.audit.data_level.data_quantities import (
    DEPTH_QUANTITIES,
    HEAD_QUANTITIES,
    ROW_QUANTITIES,
    SINK,
    SINKS,
)
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.head_attack import share_of_certificate
from attlas.audit.data_level.layer_observation import (
    observe_columns,
    observe_hidden_states,
    observe_layer,
    observe_uniform,
)
from attlas.audit.data_level.positional_share import centred_offsets, positional_heads
from attlas.audit.data_level.probes import ProbedLayer, selected_by_heads, smooth_heads, svm_space
from attlas.audit.data_level.redundancy import (
    MapDistances,
    Redundancy,
    map_distances,
    nearest_heads,
    redundancy,
)
from attlas.audit.data_level.sequence_blocks import (
    SequenceBlock,
    repeated,
    sequence_blocks,
    shuffled,
)
from attlas.audit.data_level.sequence_means import SequenceMeans
from attlas.audit.quantity import labelled
from attlas.audit.trial import silent_heads
from attlas.audit.weights_level.head_certificates import head_certificates
from attlas.bounds.attention.normalised_radius import normalised_radius
from attlas.bounds.attention.sink_gain import sink_gain
from attlas.transformers.canonical import Dense, Layer, Norm
from attlas.transformers.trained_transformer import TrainedTransformer


class AuditedData(NamedTuple):
    """Level data of one model.

    Attributes:
        heads: variables [layer, head], see `HEAD_QUANTITIES`; intervals end in `_low`, `_high`.
        depths: variables [depth], from the embedding to what leaves the last layer.
        pairs: distances of all pairs of heads, the heads of the first layer first.
        protocol: sizes, draws and seed by which it was made, by name.
        sinks: `sink_share_natural`, `sink_share_shuffled` and `sink_share_repeated`, with their
            intervals and that of uniform attention: Gu et al.'s Sink_1^.3, the share of heads and
            sequences whose first token receives more than 0.3.
        choosing: `heads` without the sequences that are held out to test what these choose.
        silent: layer and number of heads whose block of the output projection is zero.
    """

    heads: xr.Dataset
    depths: xr.Dataset
    pairs: Redundancy
    protocol: dict[str, int | float | str | list[int]]
    sinks: dict[str, float]
    choosing: xr.Dataset
    silent: tuple[tuple[int, int], ...]


class DataPass:
    """One pass through the layers of sequences from `read_sequences`, and what it collected."""

    def __init__(
        self,
        model: TrainedTransformer,
        tokens: list[np.ndarray],
        special: tuple[int, ...],
        settings: DataSettings,
        held_out: Sequence[int] = (),
    ) -> None:
        self.model, self.settings, self.special = model, settings, special
        self.means = SequenceMeans(settings, held_out)
        self.lengths = np.array([sequence.size for sequence in tokens])
        self.draw = np.random.default_rng(settings.seed)
        self.blocks = sequence_blocks(model, tokens, special)
        # A length that half of the sequences reach, or as many as the protocol takes
        enough = min(settings.sink_sequences, -(-self.lengths.size // 2))
        reached = int(np.sort(self.lengths)[-enough])
        self.sink_length = min(settings.sink_tokens, reached)
        reaching = np.flatnonzero(self.lengths >= self.sink_length)
        self.sink_places = reaching[: settings.sink_sequences]
        cut = [tokens[place][: self.sink_length] for place in self.sink_places]
        changed = (
            cut,
            [shuffled(sequence, special, self.draw) for sequence in cut],
            [repeated(sequence, special, self.draw) for sequence in cut],
        )
        self.sinks = [sequence_blocks(model, sequence, special) for sequence in changed]
        self.probes = min(settings.probes, self.sinks[0][0].members.size)
        self.heads: list[dict[str, np.ndarray]] = []
        self.sinking: dict[str, list[np.ndarray]] = {text: [] for text in (*SINKS, "null")}
        self.depths: list[dict[str, np.ndarray]] = []
        self.maps: list[list[np.ndarray]] = [[] for _ in tokens]
        self.apart: list[MapDistances] = []
        self.silent: list[tuple[int, int]] = []
        self.nulls: dict[tuple[bool, int | None], dict[str, float]] = {}
        self.layer: Layer | None = None
        self.stored = -1
        self.across = model.layers * model.heads_per_layer <= settings.pair_heads

    def pass_layer(self, index: int) -> None:
        """Everything of one layer."""
        before, layer = self.layer, self._read(index)
        self.means.begin_layer()
        self.silent += [(index, head) for head in silent_heads(layer.attention.W_O)]
        norm, projection = self.model.input_norm(index, layer, before)
        columns = self._sinks(layer) | self._probed(layer, norm, projection)
        columns |= self._observed(layer, norm, projection)
        columns["logit_share"] = share_of_certificate(
            columns["largest_logit"], columns.pop("certified_logit")
        )
        self.heads.append(columns)

    def result(self) -> AuditedData:
        """The tables."""
        self.depths.append(self._last_depth())
        pairs = self._pairs()
        grid = (self.model.layers, self.model.heads_per_layer)
        columns = _stacked(self.heads) | nearest_heads(pairs).columns(grid)
        heads = labelled(HEAD_QUANTITIES, columns, ("layer", "head"))
        depths = labelled(DEPTH_QUANTITIES, _stacked(self.depths), ("depth",))
        protocol, shares = self._protocol(), self._sink_shares()
        choosing = self._choosing(columns, grid)
        return AuditedData(heads, depths, pairs, protocol, shares, choosing, tuple(self.silent))

    def _choosing(self, columns: dict[str, np.ndarray], grid: tuple[int, int]) -> xr.Dataset:
        """The table of the heads without the sequences that are held out."""
        chooses = self.means.choosers(np.arange(len(self.lengths)))
        if chooses is not None:
            nearest = nearest_heads(self._pairs(chooses)).columns(grid)
            columns = columns | _stacked(self.means.choosing) | nearest
        return labelled(HEAD_QUANTITIES, columns, ("layer", "head"))

    def _protocol(self) -> dict[str, int | float | str | list[int]]:
        """What was done, for the reader of a table."""
        assert self.layer is not None  # a model has a layer, and all of its layers one form
        return {
            "sequences": len(self.lengths),
            "tokens": int(self.lengths.sum()),
            "special": [int(token) for token in self.special],
            "sink_tokens": self.sink_length,
            "sink_sequences": self.sink_places.size,
            "sink_threshold": SINK,
            "probes": self.probes,
            "svm_space": svm_space(self.layer.attention),
            "draws": self.settings.draws,
            "level": self.settings.level,
            "seed": self.settings.seed,
        }

    def _sink_shares(self) -> dict[str, float]:
        """The share of heads that sink, of each sequence; then its mean over sequences."""
        shares = {
            f"sink_share_{text}": np.concatenate(of_layers, axis=1).mean(axis=1)
            for text, of_layers in self.sinking.items()
        }
        null = float(shares.pop("sink_share_null").mean())
        facts = {name: float(value) for name, value in self.means.intervals(shares).items()}
        return facts | {"sink_share_null": null}

    def _read(self, index: int) -> Layer:
        """The layer's weights; a shared one is read once."""
        stored = self.model.stored_layer[index]
        if self.layer is None or stored != self.stored:
            self.layer, self.stored = self.model.layer(index), stored
        return self.layer

    def _sinks(self, layer: Layer) -> dict[str, np.ndarray]:
        """Attention on the first token, for the three texts; every block moves on."""
        columns = {}
        for text, blocks in zip(SINKS, self.sinks, strict=True):
            first = np.zeros((self.sink_places.size, self.model.heads_per_layer))
            for place, block in enumerate(blocks):
                if text == SINKS[0] and place == 0:
                    self.probe_rows = np.asarray(block.hidden)[: self.probes]
                x, alpha = observe_columns(layer, block.hidden, jnp.asarray(block.present))
                first[block.members] = np.asarray(alpha)[: block.members.size, :, 0]
                blocks[place] = block._replace(hidden=x)
            columns[f"sink_{text}"] = first
            self.sinking[text].append(first > SINK)
        null = self._null(layer)["sink"]
        self.sinking["null"].append(np.full_like(first, null > SINK))
        nulls = {f"{name}_null": np.full(self.model.heads_per_layer, null) for name in columns}
        columns["sink_gain"], nulls["sink_gain_null"] = (
            np.asarray(sink_gain(jnp.asarray(mass), self.sink_length))
            for mass in (columns["sink_natural"], nulls["sink_natural_null"])
        )
        return self.means.note(columns, self.sink_places) | nulls

    def _probed(
        self, layer: Layer, norm: Norm | None, projection: Dense | None
    ) -> dict[str, np.ndarray]:
        """Certificates, attacks and SVMs on the first of the cut sequences."""
        s, longest = self.settings, int(self.lengths.max())
        layer_norm = None if layer.norm_placement == "post-norm" else layer.attention_norm
        width = layer.attention.W_Q.shape[1] if norm is None else norm.gain.size
        start = np.random.default_rng(s.seed).normal(size=(self.sink_length, width))
        hidden = self.probe_rows[:, : self.sink_length]
        with jax.enable_x64(True):
            fields = (layer.attention, norm, projection, layer_norm, hidden, start)
            wide = ProbedLayer(
                *jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), np.float64), fields)
            )
            smooth = smooth_heads(wide, s.local_steps, s.ball_steps)
            svm = selected_by_heads(smooth, s.svm_sequences, s.svm_rows, self.draw)
            certified = head_certificates(smooth.folded, wide.norm, self.sink_length)
            ball, logit = certified["lipschitz_bound"], certified["logit_bound"]
            radius = float(np.linalg.norm(smooth.tokens, axis=-1).max()) * (1 + 1e-12)
            seen = head_certificates(smooth.folded, wide.norm, self.sink_length, radius)
            # Without rotation no bound on a logit depends on the number of tokens.
            if smooth.folded.rotary is not None:
                logit = head_certificates(smooth.folded, wide.norm, longest)["logit_bound"]
        local, reached = np.asarray(smooth.local), np.asarray(smooth.local_attack)
        in_ball = np.asarray(smooth.ball_attack)
        ratios = {
            "local_certificate": local,
            "local_attack": reached,
            "local_ratio": share_of_certificate(reached, local),
        }
        nulls = {name: values for name, values in svm.items() if name.endswith("_null")}
        measured = {name: values for name, values in svm.items() if name not in nulls}
        intervals = self.means.intervals(ratios) | self.means.intervals(measured)
        intervals |= {name: values.mean(axis=0) for name, values in nulls.items()}
        intervals |= {"ball_certificate": ball, "ball_attack": in_ball}
        intervals["observed_certificate"] = seen["lipschitz_bound"]
        return intervals | {
            "ball_ratio": share_of_certificate(in_ball, ball),
            "certified_logit": logit,
        }

    def _observed(
        self, layer: Layer, norm: Norm | None, projection: Dense | None
    ) -> dict[str, np.ndarray]:
        """The statistics of all rows; hidden states move on."""
        number, heads = len(self.lengths), self.model.heads_per_layer
        widest = int(self.lengths.max())
        rows = np.zeros((number, len(ROW_QUANTITIES) + 1, heads))
        offsets = np.zeros((number, heads, 2 * widest - 1), np.int32)
        hidden, largest = np.zeros((number, 5)), np.zeros(heads)
        picked: list[np.ndarray] = [np.zeros(0)] * number
        for place, block in enumerate(self.blocks):
            x, seen = observe_layer(
                layer,
                block.hidden,
                jnp.asarray(block.present),
                jnp.asarray(block.special),
                jnp.asarray(self._picked(block)),
            )
            self.blocks[place] = block._replace(hidden=x)
            seen = jax.tree.map(lambda a, n=block.members.size: np.asarray(a)[:n], seen)
            members = block.members
            rows[members] = np.stack([*seen.statistics, seen.entropy_floor], axis=1)
            offsets[members] = centred_offsets(seen.offsets, widest)
            hidden[members] = np.stack([*seen.residual, seen.radius], axis=1)
            largest = np.maximum(largest, seen.largest_logit.max(axis=0))
            for row, member in enumerate(members):
                picked[member] = seen.rows[row]
        self._keep(picked)
        self._keep_depth(hidden, norm, projection)
        null = self._null(layer)
        names = [*(quantity.name for quantity in ROW_QUANTITIES), "entropy_floor"]
        columns = {name: rows[:, place] for place, name in enumerate(names)}
        intervals = self.means.note(columns, np.arange(number))
        share, offset = positional_heads(layer, offsets, self.lengths)
        intervals |= self.means.intervals({"positional_share": share})
        chooses = self.means.choosers(np.arange(number))
        if chooses is not None:
            share, _ = positional_heads(layer, offsets[chooses], self.lengths[chooses])
            self.means.choosing[-1] |= self.means.intervals({"positional_share": share})
        intervals |= {f"{q.name}_null": np.full(heads, null[q.name]) for q in ROW_QUANTITIES}
        # No weight of uniform attention over two tokens or more exceeds 0.8.
        intervals["positional_share_null"] = np.zeros(heads)
        return intervals | {"positional_offset": offset, "largest_logit": largest}

    def _picked(self, block: SequenceBlock) -> Int[np.ndarray, "b R"]:
        """Rows at equal distances."""
        R = self.settings.pair_rows
        share = (np.arange(R) + 0.5) / R
        return (share[None] * block.lengths[:, None]).astype(np.int32)

    def _keep(self, picked: list[np.ndarray]) -> None:
        """Rows of the maps, for pairs of all layers or of this one."""
        if self.across:
            for maps, rows in zip(self.maps, picked, strict=True):
                maps.append(rows)
        else:
            self.apart.append(map_distances(picked))

    def _keep_depth(
        self, hidden: Float[np.ndarray, "n five"], norm: Norm | None, projection: Dense | None
    ) -> None:
        """Residuals of the rows that enter a layer, and their radius."""
        radius = np.nan
        if norm is not None and projection is None:
            radius = float(normalised_radius(norm.gain, norm.bias))
        depth = self._depth(hidden[:, :4])
        self.depths.append(
            depth | {"largest_token": hidden[:, 4].max(), "certified_token": np.array(radius)}
        )

    def _last_depth(self) -> dict[str, np.ndarray]:
        """Residuals of what leaves the last layer, which no attention reads."""
        hidden = np.zeros((len(self.lengths), 4))
        for block in self.blocks:
            statistics = observe_hidden_states(block.hidden, jnp.asarray(block.present))
            stacked = np.stack([np.asarray(statistic) for statistic in statistics], axis=1)
            hidden[block.members] = stacked[: block.members.size]
        nothing = np.array(np.nan)
        return self._depth(hidden) | {"largest_token": nothing, "certified_token": nothing}

    def _depth(self, hidden: Float[np.ndarray, "n four"]) -> dict[str, np.ndarray]:
        names = ("residual_l2", "residual_composite", "mean_cosine")
        columns = {name: hidden[:, place] for place, name in enumerate(names)}
        intervals = self.means.intervals(columns)
        intervals["residual_l2_null"] = np.asarray(np.sqrt(1 - 1 / self.lengths).mean())
        return intervals | {"mean_cosine_null": np.array(0.0), "largest_entry": hidden[:, 3].max()}

    def _null(self, layer: Layer) -> dict[str, float]:
        """The statistics of uniform attention, once for every kind of mask."""
        kind = (layer.attention.causal, layer.attention.window)
        if kind not in self.nulls:
            total = np.zeros(len(ROW_QUANTITIES))
            for block in self.blocks:
                seen = observe_uniform(
                    layer.attention, jnp.asarray(block.present), jnp.asarray(block.special)
                )
                size = block.members.size
                total += [
                    float(np.sum(np.asarray(statistic)[:size])) for statistic in seen.statistics
                ]
            block = self.sinks[0][0]
            seen = observe_uniform(
                layer.attention, jnp.asarray(block.present), jnp.asarray(block.special)
            )
            means = total / len(self.lengths)
            null = {q.name: mean for q, mean in zip(ROW_QUANTITIES, means, strict=True)}
            self.nulls[kind] = null | {"sink": float(np.asarray(seen.columns)[0, 0])}
        return self.nulls[kind]

    def _pairs(self, members: Bool[np.ndarray, " n"] | None = None) -> Redundancy:
        """Distances of all pairs; between layers only where the model has few heads.

        Args:
            members: the sequences that choose; all when None.
        """
        s = self.settings
        if self.across and not self.apart:
            self.apart.append(map_distances([np.concatenate(maps) for maps in self.maps]))
        several = [
            redundancy(distances, members, draws=s.draws, level=s.level, seed=s.seed)
            for distances in self.apart
        ]
        if self.across:
            return several[0]
        size = self.model.heads_per_layer
        matrices = [np.full((size * len(several),) * 2, np.nan) for _ in Redundancy._fields]
        for place, pair in enumerate(several):
            block = slice(place * size, (place + 1) * size)
            for array, part in zip(matrices, pair, strict=True):
                array[block, block] = part
        return Redundancy(*matrices)


def _stacked(rows: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Columns of all layers or depths by name."""
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
