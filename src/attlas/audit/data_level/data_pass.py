"""One pass of a batch through the layers: what is observed on the way, as tables."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from attlas.audit.data_level.data_quantities import (
    DEPTH_QUANTITIES,
    HEAD_QUANTITIES,
    ROW_QUANTITIES,
    SINK,
    SINKS,
)
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.layer_observation import (
    observe_columns,
    observe_hidden_states,
    observe_layer,
    observe_uniform,
)
from attlas.audit.data_level.probes import ProbedLayer, selected_by_heads, smooth_heads, svm_space
from attlas.audit.data_level.redundancy import Redundancy, nearest_heads, redundancy
from attlas.audit.data_level.sequence_blocks import (
    SequenceBlock,
    repeated,
    sequence_blocks,
    shuffled,
)
from attlas.audit.quantity import labelled
from attlas.audit.weights_level.head_certificates import head_certificates
from attlas.bounds.attention.normalised_radius import normalised_radius
from attlas.bounds.attention.sink_gain import sink_gain
from attlas.core.arrays import ArrayInput
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean
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
    """

    heads: xr.Dataset
    depths: xr.Dataset
    pairs: Redundancy
    protocol: dict[str, int | float | str | list[int]]
    sinks: dict[str, float]


class DataPass:
    """One pass through the layers of sequences from `read_sequences`, and what it collected."""

    def __init__(
        self,
        model: TrainedTransformer,
        tokens: list[np.ndarray],
        special: tuple[int, ...],
        settings: DataSettings,
    ) -> None:
        self.model, self.settings, self.special = model, settings, special
        self.lengths = np.array([sequence.size for sequence in tokens])
        self.draw = np.random.default_rng(settings.seed)
        self.blocks = sequence_blocks(model, tokens, special)
        # A length that half of the sequences reach, or as many as the protocol takes.
        enough = min(settings.sink_sequences, -(-self.lengths.size // 2))
        reached = int(np.sort(self.lengths)[-enough])
        self.sink_length = min(settings.sink_tokens, reached)
        cut = [
            sequence[: self.sink_length] for sequence in tokens if sequence.size >= self.sink_length
        ]
        cut = cut[: settings.sink_sequences]
        changed = (
            cut,
            [shuffled(sequence, special, self.draw) for sequence in cut],
            [repeated(sequence, special, self.draw) for sequence in cut],
        )
        self.sinks = [sequence_blocks(model, sequence, special) for sequence in changed]
        self.cut = len(cut)
        self.probes = min(settings.probes, self.sinks[0][0].members.size)
        self.heads: list[dict[str, np.ndarray]] = []
        self.sinking: dict[str, list[np.ndarray]] = {text: [] for text in (*SINKS, "null")}
        self.depths: list[dict[str, np.ndarray]] = []
        self.maps: list[list[np.ndarray]] = [[] for _ in tokens]
        self.within: list[Redundancy] = []
        self.nulls: dict[tuple[bool, int | None], dict[str, float]] = {}
        self.layer: Layer | None = None
        self.stored = -1
        self.across = model.layers * model.heads_per_layer <= settings.pair_heads

    def pass_layer(self, index: int) -> None:
        """Everything of one layer."""
        before, layer = self.layer, self._read(index)
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
        nearest = nearest_heads(pairs)
        grid = (self.model.layers, self.model.heads_per_layer)
        columns = {name: np.stack([layer[name] for layer in self.heads]) for name in self.heads[0]}
        columns["nearest_distance"] = nearest.distance.reshape(grid)
        for end in ("low", "high", "null"):
            columns[f"nearest_distance_{end}"] = getattr(nearest, end).reshape(grid)
        columns["nearest_layer"] = np.where(nearest.place < 0, -1, nearest.place // grid[1])
        columns["nearest_head"] = np.where(nearest.place < 0, -1, nearest.place % grid[1])
        for name in ("nearest_layer", "nearest_head"):
            columns[name] = columns[name].reshape(grid)
        rows = {name: np.stack([layer[name] for layer in self.depths]) for name in self.depths[0]}
        heads = labelled(HEAD_QUANTITIES, columns, ("layer", "head"))
        depths = labelled(DEPTH_QUANTITIES, rows, ("depth",))
        return AuditedData(heads, depths, pairs, self._protocol(), self._sink_shares())

    def _protocol(self) -> dict[str, int | float | str | list[int]]:
        """What was done, for the reader of a table."""
        assert self.layer is not None  # a model has a layer, and all of its layers one form
        return {
            "sequences": len(self.lengths),
            "tokens": int(self.lengths.sum()),
            "special": [int(token) for token in self.special],
            "sink_tokens": self.sink_length,
            "sink_sequences": self.cut,
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
        facts = {name: float(value) for name, value in self._interval(shares).items()}
        return facts | {"sink_share_null": null}

    def _read(self, index: int) -> Layer:
        """The layer's weights; a shared one is read once."""
        stored = self.model.stored_layer[index]
        if self.layer is None or stored != self.stored:
            self.layer, self.stored = self.model.layer(index), stored
        return self.layer

    def _interval(self, values: dict[str, Float[np.ndarray, " n *H"]]) -> dict[str, np.ndarray]:
        """Means over sequences and their intervals, all from the same draws."""
        s = self.settings
        stacked = np.stack(list(values.values()), axis=1)
        interval = bootstrap_mean(stacked, draws=s.draws, level=s.level, seed=s.seed)
        ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
        return {
            f"{name}{end}": np.asarray(array[place])
            for place, name in enumerate(values)
            for end, array in ends.items()
        }

    def _sinks(self, layer: Layer) -> dict[str, np.ndarray]:
        """Attention on the first token, for the three texts; every block moves on."""
        columns = {}
        for text, blocks in zip(SINKS, self.sinks, strict=True):
            first = np.zeros((self.cut, self.model.heads_per_layer))
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
        return self._interval(columns) | nulls

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
        intervals = self._interval(ratios) | self._interval(measured)
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
            offsets[members] = _centred(seen.offsets, widest)
            hidden[members] = np.stack([*seen.residual, seen.radius], axis=1)
            largest = np.maximum(largest, seen.largest_logit.max(axis=0))
            for row, member in enumerate(members):
                picked[member] = seen.rows[row]
        self._keep(picked)
        self._keep_depth(hidden, norm, projection)
        null = self._null(layer)
        names = [*(quantity.name for quantity in ROW_QUANTITIES), "entropy_floor"]
        columns = {name: rows[:, place] for place, name in enumerate(names)}
        share, offset = self._positional(layer, offsets)
        intervals = self._interval(columns | {"positional_share": share})
        intervals |= {f"{q.name}_null": np.full(heads, null[q.name]) for q in ROW_QUANTITIES}
        # No weight of uniform attention over two tokens or more exceeds 0.8.
        intervals["positional_share_null"] = np.zeros(heads)
        return intervals | {"positional_offset": offset, "largest_logit": largest}

    def _picked(self, block: SequenceBlock) -> Int[np.ndarray, "b R"]:
        """Rows at equal distances."""
        R = self.settings.pair_rows
        share = (np.arange(R) + 0.5) / R
        return (share[None] * block.lengths[:, None]).astype(np.int32)

    def _positional(self, layer: Layer, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Share of the most frequent offset among rows that see two tokens or more."""
        best = offsets.sum(axis=0).argmax(axis=1)
        counts = np.take_along_axis(offsets, best[None, :, None], axis=2)[..., 0]
        lone = 1 if layer.attention.causal else 0
        rows = np.maximum(self.lengths - lone, 1)
        offset = best - (offsets.shape[2] - 1) // 2
        return counts / rows[:, None], np.where(counts.sum(axis=0) > 0, offset, np.nan)

    def _keep(self, picked: list[np.ndarray]) -> None:
        """Rows of the maps, for pairs of all layers or of this one."""
        if self.across:
            for maps, rows in zip(self.maps, picked, strict=True):
                maps.append(rows)
        else:
            self.within.append(self._distances(picked))

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
        intervals = self._interval({name: hidden[:, place] for place, name in enumerate(names)})
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

    def _distances(self, maps: list[np.ndarray]) -> Redundancy:
        s = self.settings
        return redundancy(maps, draws=s.draws, level=s.level, seed=s.seed)

    def _pairs(self) -> Redundancy:
        """Distances of all pairs; between layers only where the model has few heads."""
        if self.across:
            return self._distances([np.concatenate(maps) for maps in self.maps])
        size = self.model.heads_per_layer
        matrices = [np.full((size * len(self.within),) * 2, np.nan) for _ in Redundancy._fields]
        for place, pair in enumerate(self.within):
            block = slice(place * size, (place + 1) * size)
            for array, part in zip(matrices, pair, strict=True):
                array[block, block] = part
        return Redundancy(*matrices)


def _centred(offsets: np.ndarray, widest: int) -> np.ndarray:
    """Counts by offset in the width of the longest sequence."""
    middle = (offsets.shape[2] - 1) // 2
    radius = min(middle, widest - 1)
    centred = np.zeros((*offsets.shape[:2], 2 * widest - 1), np.int32)
    centred[:, :, widest - 1 - radius : widest + radius] = offsets[
        :, :, middle - radius : middle + radius + 1
    ]
    return centred


def share_of_certificate(reached: ArrayInput, certified: ArrayInput) -> np.ndarray:
    """The attack over the certificate, entrywise.

    Returns:
        The ratios; NaN where nothing can be reached (a head without logits or values) and where
        the certificate is infinite, beside which a ratio of 0 would look like slack.

    Examples:
        >>> share_of_certificate([1.0, 0.0, 5.0], [2.0, 0.0, np.inf]).tolist()
        [0.5, nan, nan]
    """
    above, below = np.asarray(reached, float), np.asarray(certified, float)
    says = (below > 0) & np.isfinite(below)
    return np.where(says, above / np.where(says, below, 1), np.nan)
