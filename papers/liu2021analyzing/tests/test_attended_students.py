"""Students of an attended teacher come near it once the samples are many."""

import numpy as np

from liu2021analyzing.library.training.attended_students import train_attended_students


def test_students_that_read_what_the_teacher_reads_learn_it():
    found = train_attended_students(
        0, [2], 4, 2, [16, 1024], noise=0.1, fresh=500, starts=4, max_steps=40
    )
    knowing, moving_unknown = found.error[[0, 1, 3]], found.error[4]
    # The variance of the labels' noise times pd parameters over n, which holds up to a factor.
    assert np.all(knowing[:, 1] < 4 * 0.1**2 * 8 / 1024)
    assert found.reached[[0, 1, 3], 1].all()
    # A support that moves is not a two-layer network of this width.
    assert moving_unknown[1] > 10 * knowing[2, 1]
