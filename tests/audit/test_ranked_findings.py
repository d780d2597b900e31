"""One list of at most five findings, by what depends on them."""

import pytest

from attlas.audit.decision import Decision
from attlas.audit.finding import Finding
from attlas.audit.ranked_findings import MOST, finding_of, ranked_findings


def decision(kind, *, advised=False, low=0.0, saving=0.0, heads=()):
    """An action whose loss of 2 rises by at least `low`."""
    numbers = (2.0, low + 0.1, low, low + 0.2, "nats", 8, advised)
    return Decision(kind, f"what of {kind}", "m", "a", *numbers, heads=heads, saving=saving)


def observation(quantity, consequence, head=0):
    layer = None if head is None else 0
    return Finding(quantity, "e", layer, head, quantity, 4.0, "a", "f", consequence)


def test_what_saves_or_costs_most_is_first_and_the_learning_rate_before_all():
    decisions = [
        decision("heads", advised=True, saving=0.3),
        decision("sinks", low=1.0),
        decision("step", advised=True),
        decision("precision", advised=True),
    ]
    seen = [observation("entropy", 0.4), observation("positional_share", 0.0)]
    findings, further = ranked_findings(decisions, seen)
    assert len(findings) == MOST
    order = [each.quantity or each.kind for each in findings]
    assert order == ["step", "sinks", "entropy", "heads", "precision"]
    assert [each.quantity for each in further] == ["positional_share"]


def test_what_a_decision_says_too_is_no_finding_of_its_own():
    seen = [observation("sink_natural", 9.0), observation("removal_mean", 9.0, None)]
    seen.append(observation("removal_mean", 0.5, 3))  # the head that is needed most stays
    removed = [decision("sinks"), decision("heads", advised=True)]
    findings, further = ranked_findings(removed, seen)
    assert [each.kind for each in findings] == ["observation", "sinks", "heads"]
    assert [each.quantity for each in further] == ["sink_natural", "removal_mean"]
    kept = [decision("sinks"), decision("heads")]
    assert [each.quantity for each in ranked_findings(kept, seen)[1]] == ["sink_natural"]
    assert ranked_findings([], seen)[1] == ()


def test_a_decision_against_an_action_counts_by_what_it_would_certainly_cost():
    assert decision("heads", advised=True, low=0.5, saving=0.25).consequence == 0.25
    assert decision("heads", low=0.5, saving=0.25).consequence == 0.25
    assert decision("heads", low=-0.5).consequence == 0
    assert decision("sinks", low=3.0).consequence == 1.5


@pytest.mark.parametrize(("heads", "place"), [(((1, 2),), (1, 2)), (((1, 2), (1, 3)), (None,) * 2)])
def test_a_decision_on_one_head_leads_to_its_card(heads, place):
    finding = finding_of(decision("heads", heads=heads))
    assert (finding.layer, finding.head) == place
    assert finding.to_json()["strength"] is None
    assert finding.text.startswith("what of heads. a. On 8 sequences that did not choose it")
