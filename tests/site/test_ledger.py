"""The slack ledger against factors worked out by hand."""

import pytest

from attlas.site.atlas import gather
from attlas.site.ledger import slack_ledger


def test_a_chain_is_in_proof_order_and_loses_the_product_of_its_factors(
    store, claims, errata, experiments
):
    atlas = gather(store, claims, errata, experiments)
    (chain,) = slack_ledger(atlas.claims)
    assert chain.name == "From A to B"
    assert [link.entry.slug for link in chain.links] == ["first", "plain"]
    # The second step is attained by its check; the search found .8 for the first, its check .25.
    assert [link.factor for link in chain.links] == pytest.approx([1.0, 1 / 0.8])
    assert [link.share for link in chain.links] == pytest.approx([0.0, 1.0])
    assert chain.factor == pytest.approx(1 / 0.8)
