"""Settings of students with self-attention against students that are trained alone."""

import numpy as np
import pytest

from liu2021analyzing.library.training.self_attention_students import (
    Setting,
    Shape,
    errors_by_setting,
    errors_by_size,
    self_attention_task,
)

SHAPE = Shape(p=3, t=2, d_q=2, d_v=2, d=3)


@pytest.mark.thorough
def test_settings_that_share_a_program_do_not_change_each_other():
    task = self_attention_task(1, SHAPE, 40, 200, noise=0.5, size=1.0)
    settings = [Setting(2), Setting(1), Setting(2, l2=10.0), Setting(4)]
    together = errors_by_setting(task, SHAPE, settings, 0, 1, max_steps=2)
    alone = errors_by_setting(task, SHAPE, [Setting(2), Setting(1)], 0, 1, max_steps=2)
    np.testing.assert_allclose(together[:2], alone, rtol=1e-6)
    assert len(set(together)) == 4


def test_more_samples_make_better_students():
    task = self_attention_task(0, SHAPE, 800, 500, noise=0.5, size=1.0)
    few, many = errors_by_size(task, SHAPE, [40, 800], None, 0, 3, max_steps=30)
    assert many < few / 4
    assert errors_by_size(task, SHAPE, [40, 800], 3, 0, 2, max_steps=30)[1] > many
