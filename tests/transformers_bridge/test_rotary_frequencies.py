"""Frequencies of rotary positions."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.rotary_frequencies import rotary_frequencies, rotary_rule

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def frequencies(rule, size=64, **more):
    return rotary_frequencies(Configuration({"rope_parameters": rule} | more), size)


def test_default_is_geometric():
    found = frequencies({"rope_theta": 10000.0}, 8)
    np.testing.assert_allclose(found, [1, 0.1, 0.01, 0.001], rtol=4 * np.finfo(float).eps)
    assert found.dtype == np.float64


def test_llama3_by_wavelength_pair_by_pair():
    found, plain = frequencies(LLAMA3), frequencies({"rope_theta": 500000.0})
    kinds = set()
    for new, old in zip(found, plain, strict=True):
        wave = 2 * np.pi / old
        if wave < 8192 / 4:
            expected, kind = old, "kept"
        elif wave > 8192 / 1:
            expected, kind = old / 8, "divided"
        else:
            smooth = (8192 / wave - 1) / (4 - 1)
            expected, kind = (1 - smooth) * old / 8 + smooth * old, "between"
        kinds.add(kind)
        assert abs(new - expected) <= 16 * np.finfo(float).eps * expected
    assert kinds == {"kept", "divided", "between"}


def test_original_context_falls_back_to_the_positions():
    rule = {key: value for key, value in LLAMA3.items() if key[0] != "o"}
    same = frequencies(rule, max_position_embeddings=8192)
    assert np.array_equal(same, frequencies(LLAMA3))
    other = frequencies(LLAMA3, original_max_position_embeddings=4096)
    assert not np.array_equal(other, same)


def test_older_section_wins_where_it_is_not_empty():
    new, old = {"rope_theta": 5.0}, {"type": "linear", "factor": 2.0}
    both = Configuration({"rope_scaling": old, "rope_parameters": new})
    assert rotary_rule(both).values == old
    assert rotary_rule(Configuration({"rope_scaling": None, "rope_parameters": new})).values == new


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"rope_type": "longrope"}, "no 'max_position_embeddings'"),
        (
            {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 9},
            "rope_type = 'yarn' in the configuration is not supported for this type of model",
        ),
        ({"full_attention": {"rope_theta": 5.0}}, "with a table 'full_attention'"),
        (LLAMA3 | {"high_freq_factor": 1.0}, "high_freq_factor = 1.0 in the configuration is not"),
        ({"rope_type": "linear"}, "no 'factor'"),
        ({"rope_theta": -1}, "rope_theta = -1 in the configuration is not a finite number above"),
    ],
)
def test_other_rules_are_refused(rule, text):
    with pytest.raises(UserError, match=text):
        frequencies(rule)
