"""Topics: each says something, and leads to what the atlas has."""

import pytest

from attlas.core.errors import UserError
from attlas.experiments.store import Store
from attlas.site.atlas import gather
from attlas.site.content import Atlas
from attlas.site.pages import places_of
from attlas.site.topics import _topic, topics, topics_of


def test_every_topic_leads_to_what_the_whole_atlas_has(tmp_path):
    atlas = gather(Store(tmp_path / "results"))
    places = places_of(atlas)
    for topic in topics_of(atlas):
        assert tuple(anchor for _, anchor in topic.links) == topic.nearest, topic.name
        # What has no place of its own would be sought on the page of the topics.
        assert [anchor for anchor in topic.nearest if anchor not in places] == [], topic.name


def test_names_and_anchors_are_those_of_one_topic_each():
    assert len({topic.anchor for topic in topics()}) == len(topics())
    assert all(topic.text.endswith(".") for topic in topics())


def test_a_page_of_ones_own_paper_has_no_topics():
    assert topics_of(Atlas(papers=(), title="My paper")) == ()


def test_an_entry_of_another_form_is_named():
    with pytest.raises(UserError, match="'dropout' lacks"):
        _topic("dropout\n  No statement is about it.")
