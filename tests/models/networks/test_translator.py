import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.translator import make_translator

SOURCE, MASK, TARGET = jnp.array([3, 1, 4, 0]), jnp.arange(4) < 3, jnp.array([5, 2, 6])


def _norm(x):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6)


def _attend(own, x, y, seen):
    """Head by head, of width six; what is read, and the weights."""
    q, k, v = (a @ np.asarray(w) for a, w in ((x, own.query), (y, own.key), (y, own.value)))
    parts, maps = [], []
    for cut in (slice(0, 6), slice(6, 12)):
        weights = np.exp(q[:, cut] @ k[:, cut].T / np.sqrt(6)) * seen
        maps.append(weights / weights.sum(axis=1, keepdims=True))
        parts.append(maps[-1] @ v[:, cut])
    return np.concatenate(parts, axis=1) @ np.asarray(own.output), np.array(maps)


def _placed(words, numbers, pair):
    """Word vectors times sqrt(12), with positions that begin anew in each pair."""
    rows, first = [], 0
    for t, number in enumerate(np.asarray(numbers)):
        first = t if t and pair[t] != pair[t - 1] else first
        angles = [(t - first) / 10000 ** (2 * k / 12) for k in range(6)]
        rows.append(np.sqrt(12) * np.asarray(words[number]) + [*np.sin(angles), *np.cos(angles)])
    return np.array(rows)


def _reference(model, source, source_pair, target, target_pair):
    """Logits and the weights of each attention; padding, pair 0, attends to everything."""
    x = _placed(model.source_words, source, source_pair)
    y = _placed(model.target_words, target, target_pair)

    def seen(queries, keys):
        return np.array([[q in (0, k) for k in keys] for q in queries])

    def network(block, x):
        hidden = np.maximum(x @ np.asarray(block.up), 0) @ np.asarray(block.down)
        return _norm(x + hidden) * np.asarray(block.scales)[-1]

    maps = [], [], []
    for block in model.encoder:
        mixed, own = _attend(block.own, x, x, seen(source_pair, source_pair))
        x = network(block, _norm(x + mixed) * np.asarray(block.scales)[0])
        maps[0].append(own)
    past = np.tril(np.ones((len(target), len(target))))
    for block in model.decoder:
        mixed, before = _attend(block.own, y, y, past * seen(target_pair, target_pair))
        y = _norm(y + mixed) * np.asarray(block.scales)[0]
        mixed, cross = _attend(block.source, y, x, seen(target_pair, source_pair))
        y = network(block, _norm(y + mixed) * np.asarray(block.scales)[1])
        maps[1].append(before)
        maps[2].append(cross)
    return y @ np.asarray(model.readout), maps


def _model():
    """A model of one block, whose layer norms have different scales."""
    model = make_translator(jax.random.key(0), (6, 7), width=12, blocks=1, heads=2, hidden=5)
    draws = np.random.default_rng(0)
    shape = np.shape
    return eqx.tree_at(
        lambda m: (m.encoder[0].scales, m.decoder[0].scales),
        model,
        replace_fn=lambda scales: scales + draws.uniform(-0.5, 0.5, shape(scales)),
    )


# Two blocks, five layer norms: some hundred roundings of numbers of size one.
ROOM = 1000 * np.finfo(float).eps


def test_logits_and_weights_agree_with_a_plain_computation():
    model = _model()
    expected, theirs = _reference(model, SOURCE, [1, 1, 1, 0], TARGET, [1, 1, 1])
    logits, rows = jax.jit(lambda *a: (model(*a), model.attention(*a)))(SOURCE, MASK, TARGET)
    assert np.max(np.abs(np.asarray(logits) - expected)) < ROOM
    for mine, wanted in zip(rows, theirs, strict=True):
        assert np.max(np.abs(np.asarray(mine) - np.array(wanted))) < ROOM


def test_pairs_and_padding_of_a_row_agree_with_a_plain_computation():
    model = _model()
    source, pair = jnp.array([3, 1, 4, 2, 5, 0]), [1, 1, 1, 2, 2, 0]
    target, target_pair = jnp.array([5, 2, 6, 1, 3, 4]), [1, 1, 2, 2, 2, 0]
    expected, _ = _reference(model, source, pair, target, target_pair)
    rows = (source, jnp.array(pair), target, jnp.array(target_pair))
    logits = jax.jit(lambda *a: model(*a))(*(row[None] for row in rows))
    assert np.max(np.abs(np.asarray(logits[0]) - expected)) < ROOM


def test_the_start_is_xavier_of_keys_that_differ():
    model = make_translator(jax.random.key(3), (6, 7), width=12, blocks=2, heads=2, hidden=5)
    keys = jax.random.split(jax.random.key(3), 7)
    for words, key, size in ((model.source_words, keys[0], 6), (model.target_words, keys[1], 7)):
        gaussian = np.asarray(jax.random.normal(key, (size, 12)))
        np.testing.assert_allclose(words, gaussian / np.sqrt(12), rtol=1e-15)

    def uniform(key, shape):
        bound = np.sqrt(6 / sum(shape))
        return np.asarray(jax.random.uniform(key, shape, minval=-1)) * bound

    np.testing.assert_allclose(model.readout, uniform(keys[2], (12, 7)), rtol=1e-14, atol=1e-16)
    for key, block in zip(keys[3:], (*model.encoder, *model.decoder), strict=True):
        decodes = block.source is not None
        used = jax.random.split(key, 10)
        attention = [block.own, block.source] if decodes else [block.own]
        matrices = [m for a in attention for m in (a.query, a.key, a.value, a.output)]
        matrices += [block.up, block.down]
        chosen = [*used[: 4 * len(attention)], *used[8:]]
        for matrix, one in zip(matrices, chosen, strict=True):
            wanted = uniform(one, matrix.shape)
            np.testing.assert_allclose(matrix, wanted, rtol=1e-14, atol=1e-16)
        assert block.scales.tolist() == np.ones((3 if decodes else 2, 12)).tolist()
    assert [block.source is None for block in model.encoder + model.decoder] == [True] * 2 + [
        False
    ] * 2


def test_words_to_come_and_padding_change_nothing():
    model = make_translator(jax.random.key(1), (6, 7), width=4, blocks=1, heads=2, hidden=5)
    run = jax.jit(lambda *a: model(*a))
    one = run(SOURCE, MASK, TARGET)
    assert np.array_equal(run(SOURCE.at[3].set(5), MASK, TARGET), one)
    later = run(SOURCE, MASK, TARGET.at[2].set(0))
    assert np.array_equal(later[:2], one[:2])
    assert not np.array_equal(later[2], one[2])


@pytest.mark.thorough
def test_pairs_in_one_row_are_the_pairs_apart():
    """Two pairs and padding; the gradient too, and a row without any pair has no NaN."""
    model = make_translator(jax.random.key(2), (6, 7), width=4, blocks=2, heads=2, hidden=5)
    pairs = [(jnp.array([3, 1, 4]), jnp.array([5, 2])), (jnp.array([2, 5]), jnp.array([6, 1, 3]))]
    source = jnp.zeros((2, 7), int).at[0, :5].set(jnp.concatenate([s for s, _ in pairs]))
    target = jnp.zeros((2, 6), int).at[0, :5].set(jnp.concatenate([t for _, t in pairs]))
    owners = (jnp.array([[1, 1, 1, 2, 2, 0, 0]]), jnp.array([[1, 1, 2, 2, 2, 0]]))
    own, there = (jnp.pad(each, ((0, 1), (0, 0))) for each in owners)

    def apart(model):
        return jnp.concatenate([model(s, jnp.ones(s.shape, bool), t) for s, t in pairs])

    def together(model):
        return model(source, own, target, there)

    out = jax.jit(together)(model)
    # Two blocks, ten layer norms: some hundred roundings of numbers of size one.
    room = 1000 * np.finfo(float).eps
    assert np.all(np.isfinite(out))
    assert np.max(np.abs(out[0, :5] - jax.jit(apart)(model))) < room
    shown = (there > 0)[:, :, None]
    mine = jax.jit(jax.grad(lambda model: jnp.sum(jnp.where(shown, together(model), 0) ** 2)))
    theirs = jax.jit(jax.grad(lambda model: jnp.sum(apart(model) ** 2)))(model)
    for one, other in zip(jax.tree.leaves(mine(model)), jax.tree.leaves(theirs), strict=True):
        assert np.max(np.abs(one - other)) < 100 * room


@pytest.mark.parametrize(
    ("change", "said"),
    [({"heads": 3}, "multiple of the 3 heads"), ({"blocks": 0}, "blocks = 0")],
)
def test_bad_sizes_are_refused(change, said):
    settings = {"width": 4, "blocks": 1, "heads": 2, "hidden": 5} | change
    with pytest.raises(UserError, match=said):
        make_translator(jax.random.key(0), (6, 7), **settings)
