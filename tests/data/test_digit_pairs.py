"""Binary problems on real digits: labels, norms, disjoint parts, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.digit_pairs import load_digit_pairs
from attlas.data.digits import load_digits
from attlas.data.labelled_tokens import require_labelled_tokens


@pytest.mark.parametrize(("tokens", "shape"), [("rows", (8, 8)), ("patches", (16, 4))])
def test_tokens_reach_the_norm_and_do_not_exceed_it(tokens, shape):
    data = load_digit_pairs((1, 7), tokens, R=2.5, scale="longest")
    norms = [jnp.linalg.norm(X, axis=-1).max() for X in (data.X_train, data.X_test)]

    assert data.X_train.shape[1:] == data.X_test.shape[1:] == shape
    np.testing.assert_allclose(max(norms), 2.5, rtol=1e-15)
    require_labelled_tokens(data.X_train, data.y_train, R=2.5)
    require_labelled_tokens(data.X_test, data.y_test, R=2.5)


@pytest.mark.parametrize(("tokens", "pixels"), [("rows", 8), ("patches", 4)])
def test_no_image_decides_the_scale_of_pixels(tokens, pixels):
    data = load_digit_pairs((1, 7), tokens, R=2.5)
    splits = load_digits(0)
    for X, split in ((data.X_train, splits.train), (data.X_test, splits.test)):
        images = split.inputs[np.isin(split.labels, (1, 7))].astype(float)
        # every pixel stands in one token: squares are summed over whole images
        norms = np.sqrt(np.sum(np.square(np.asarray(X)), axis=(1, 2)))
        expected = 2.5 / (16 * pixels**0.5) * np.sqrt(np.sum(images**2, axis=(1, 2)))
        np.testing.assert_allclose(norms, expected, rtol=1e-13)
        assert np.linalg.norm(X, axis=-1).max() <= 2.5 * (1 + 1e-15)
    few = load_digit_pairs((1, 7), tokens, R=2.5, count=2)
    np.testing.assert_array_equal(few.X_test, data.X_test)


def test_odd_against_even_keeps_all_images():
    data = load_digit_pairs(None, dtype=jnp.float32)
    assert (len(data.X_train), len(data.X_test)) == (1079, 359)
    assert data.X_train.dtype == jnp.float32
    # Half of the ten digits are odd.
    assert abs(float(data.y_train.mean())) < 0.1


def test_no_image_is_in_both_parts():
    data = load_digit_pairs()
    train, test = (
        {image.tobytes() for image in np.asarray(X)} for X in (data.X_train, data.X_test)
    )
    assert not train & test


def test_a_linear_rule_learns_the_pair():
    data = load_digit_pairs()
    rows = [np.asarray(X).reshape(len(X), -1) for X in (data.X_train, data.X_test)]
    w = np.linalg.lstsq(rows[0], np.asarray(data.y_train), rcond=1e-3)[0]
    assert np.mean(np.sign(rows[1] @ w) == np.asarray(data.y_test)) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": (3, 3)}, "not two digits"),
        ({"classes": (3, 12)}, "not two digits"),
        ({"R": 0.0}, r"R = 0\.0"),
        ({"count": 10**6}, "choose 1 to"),
        ({"source": "letters"}, "'letters' is unknown"),
        ({"tokens": "columns"}, "'columns' is unknown"),
        ({"scale": "mean"}, "'mean' is unknown"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        load_digit_pairs(**settings)


@pytest.mark.parametrize("classes", [(7, 4), None])
def test_images_alternate_and_are_divided_by_the_longest_token(classes):
    splits = load_digits(2, tuple(range(10)))
    found = load_digit_pairs(classes, R=2.5, scale="longest", count=7, seed=2)
    labels = (7, 4) if classes else ((1, 3, 5, 7, 9), (0, 2, 4, 6, 8))

    def images(split, side):
        return split.inputs[np.isin(split.labels, labels[side])].astype(float)

    first, second = (images(splits.train, side) for side in (0, 1))
    train = [(second if k % 2 else first)[k // 2] for k in range(7)]
    test = splits.test.inputs[np.isin(splits.test.labels, np.ravel(labels))].astype(float)
    longest = np.sqrt(max(np.sum(np.square(part), axis=-1).max() for part in (train, test)))
    np.testing.assert_allclose(found.X_train, np.array(train) / longest * 2.5, rtol=1e-14)
    np.testing.assert_allclose(found.X_test, test / longest * 2.5, rtol=1e-14)
    assert found.y_train.tolist() == [1, -1, 1, -1, 1, -1, 1]
    right = np.isin(splits.test.labels, labels[0])[np.isin(splits.test.labels, np.ravel(labels))]
    assert np.array_equal(found.y_test, np.where(right, 1, -1))


def test_all_pairs_may_be_asked_for_and_no_more():
    labels = load_digits(0, tuple(range(10))).train.labels
    most = 2 * min((labels == 3).sum(), (labels == 8).sum())
    assert len(load_digit_pairs(count=int(most)).X_train) == most
    for count in (0, int(most) + 1):
        with pytest.raises(UserError, match=f"choose 1 to {most}"):
            load_digit_pairs(count=count)
