import numpy as np

from trauger2023sequence.library.measures.sum_pooling import sum_pooling_suprema

EPS = np.finfo(float).eps


def test_a_function_of_the_class_reaches_the_value():
    rng = np.random.default_rng(2)
    tokens, signs = rng.normal(size=(7, 5, 3)), rng.choice([-1.0, 1.0], (4, 7))
    units = np.concatenate([np.eye(3), -np.eye(3)])
    # At W = 0 with readouts v on the corners of the l_1 ball, and both signs outside.
    outputs = np.maximum(tokens.sum(axis=1) @ units.T, 0)
    best = np.abs(signs @ outputs).max(axis=1) / 7
    assert np.all(sum_pooling_suprema(signs, tokens) <= best * (1 + 10 * EPS))


def test_values_are_half_the_largest_entry_of_the_signed_sum():
    rng = np.random.default_rng(3)
    tokens, signs = rng.normal(size=(7, 5, 3)), rng.choice([-1.0, 1.0], (4, 7))
    expected = []
    for row in signs:
        total = [0.0, 0.0, 0.0]
        for sign, sequence in zip(row, tokens, strict=True):
            for token in sequence:
                total = [a + sign * b for a, b in zip(total, token, strict=True)]
        expected.append(max(map(abs, total)) / 14)
    np.testing.assert_allclose(sum_pooling_suprema(signs, tokens), expected, rtol=1e-12)
