"""How a table of bounds picks its best and is shown."""

import math

from attlas.bounds.comparison.comparison import Comparison, Entry


def entry(name, gap, trivial, is_bound=True):
    numbers = dict.fromkeys(("rademacher", "log10_samples", "complexity", "confidence"), math.nan)
    return Entry(
        name=name,
        gap=gap,
        trivial=trivial,
        is_bound=is_bound,
        constants="none",
        union=0.0,
        union_cost=0.0,
        dominant="complexity",
        search=lambda: 7.0,
        story=lambda samples: f"from {samples:g}",
        **numbers,
    )


def test_a_non_vacuous_bound_is_best_even_beside_a_smaller_gap_of_a_harder_loss():
    vacuous, useful = entry("vacuous", 0.2, 0.1), entry("useful", 0.3, 0.9)
    found = Comparison((vacuous, useful, entry("unknown", 0.0, 1.0, False)), 10, 0.1, 1.0)
    assert found.best is useful
    assert found.best_gap == 0.3
    assert "useful" in repr(found)
    assert useful.reason == "from 7"


def test_what_is_known_is_at_most_the_range():
    found = Comparison((entry("norms", 40.0, 1.0),), 10, 0.1, 1.0)
    assert (found.best.gap, found.best_gap) == (40.0, 1.0)
