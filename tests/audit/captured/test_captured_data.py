"""Sequences of several lengths, and layers of which some cannot be recognised."""

import numpy as np
from captured_models import library, random_model

library()

from attlas.audit.captured.captured_audit import recognised_heads  # noqa: E402
from attlas.audit.captured.captured_data import CapturedData  # noqa: E402
from attlas.audit.captured.captured_weights import captured_weights  # noqa: E402
from attlas.audit.data_level.data_settings import DataSettings  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402


def test_statistics_do_not_depend_on_how_sequences_run_together():
    draw = np.random.default_rng(0)
    sequences = [draw.integers(5, 55, size) for size in (12, 9, 12, 7)]
    model = captured_module(random_model("gpt_neox"))
    settings = DataSettings(special=(1,))
    together = CapturedData(model, sequences, (1,), settings)
    alone = [CapturedData(model, [each], (1,), settings) for each in sequences]
    for layer in range(2):
        rows = [each.natural[layer].rows[0] for each in alone]
        np.testing.assert_allclose(together.natural[layer].rows, rows, rtol=1e-10)
    assert together.sink_length == 12
    assert together.sink_places.tolist() == [0, 2]


def test_what_is_not_recognised_has_no_number():
    layers = recognised_heads(captured_module(random_model("bitnet")))
    heads = captured_weights([None, layers[1]], 16)
    assert np.isnan(heads.qk_norm.values[0]).all()
    assert np.isfinite(heads.qk_norm.values[1]).all()
    assert np.isnan(heads.ov_norm.values).all()  # a norm stands before the output projection
