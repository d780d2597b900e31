import pytest

from attlas.panels.plot import without_gaps

LEFT_OUT = "What has not been run yet is left out."


@pytest.mark.parametrize(
    ("caption", "shown"),
    [
        ("Gaps are finite, $n = 6$.", "Gaps are finite, $n = 6$."),
        ("$p = nan$.", LEFT_OUT),
        ("It falls. $p = 2$: nan. 3 of 4 rise.", f"It falls. 3 of 4 rise. {LEFT_OUT}"),
        ("At 2: 0.5; at 3: nan. So.", f"So. {LEFT_OUT}"),
        ("Rate 0.5 at nan steps. Finance.", f"Finance. {LEFT_OUT}"),
    ],
)
def test_sentences_without_numbers_are_left_out(caption, shown):
    assert without_gaps(caption) == shown
