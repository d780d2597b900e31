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
    """Head by head; what is read, and the weights."""
    q, k, v = (a @ np.asarray(w) for a, w in ((x, own.query), (y, own.key), (y, own.value)))
    parts, maps = [], []
    for cut in (slice(0, 2), slice(2, 4)):
        weights = np.exp(q[:, cut] @ k[:, cut].T / np.sqrt(2)) * seen
        maps.append(weights / weights.sum(axis=1, keepdims=True))
        parts.append(maps[-1] @ v[:, cut])
    return np.concatenate(parts, axis=1) @ np.asarray(own.output), np.array(maps)


def _placed(words, numbers):
    place = np.arange(len(numbers))[:, None] / np.array([1.0, 100.0])
    waves = np.concatenate([np.sin(place), np.cos(place)], axis=1)
    return 2 * np.asarray(words)[np.asarray(numbers)] + waves


def test_logits_and_weights_agree_with_a_plain_computation():
    model = make_translator(jax.random.key(0), (6, 7), width=4, blocks=1, heads=2, hidden=5)
    x, y = _placed(model.source_words, SOURCE), _placed(model.target_words, TARGET)
    block, seen = model.encoder[0], np.asarray(MASK)[None, :]
    mixed, own = _attend(block.own, x, x, seen)
    x = _norm(x + mixed)
    x = _norm(x + np.maximum(x @ np.asarray(block.up), 0) @ np.asarray(block.down))
    block = model.decoder[0]
    mixed, before = _attend(block.own, y, y, np.tril(np.ones((3, 3))))
    y = _norm(y + mixed)
    mixed, cross = _attend(block.source, y, x, seen)
    y = _norm(y + mixed)
    y = _norm(y + np.maximum(y @ np.asarray(block.up), 0) @ np.asarray(block.down))
    expected = y @ np.asarray(model.readout)
    logits, rows = jax.jit(lambda *a: (model(*a), model.attention(*a)))(SOURCE, MASK, TARGET)
    # Two blocks, five layer norms: some hundred roundings of numbers of size one.
    room = 1000 * np.finfo(float).eps
    assert np.max(np.abs(np.asarray(logits) - expected)) < room
    for mine, theirs in zip(rows, (own, before, cross), strict=True):
        assert mine.shape == (1, *theirs.shape)
        # What padding attends to means nothing.
        words = np.asarray(MASK) if mine is rows.encoder else slice(None)
        assert np.max(np.abs(np.asarray(mine[0]) - theirs)[:, words]) < room


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
