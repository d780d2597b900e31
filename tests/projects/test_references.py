"""The bibliography is read whole, and refuses what it cannot read."""

from pathlib import Path

import pytest

from attlas.core.errors import UserError
from attlas.projects.bibliography import all_references, find_reference
from attlas.projects.references import parse_references


def test_every_entry_is_complete():
    for key, reference in all_references().items():
        assert reference.key == key
        assert reference.authors
        assert reference.venue
        # What is derived here has no address, but a text of its own.
        ours = reference.venue.startswith("papers/") and Path(reference.venue).is_file()
        assert ours or reference.url.startswith("https://")


def test_authors_are_shortened_from_the_fourth_on():
    assert find_reference("trauger2023sequence").short == "Trauger, Tewari (2023)"
    assert find_reference("deora2023optimization").short == "Deora et al. (2023)"


def test_an_entry_twice_or_without_a_year_is_refused():
    entry = "@misc{a1,\n  title = {T},\n  author = {Doe, Jo},\n  year = {2020},\n}\n"
    with pytest.raises(ValueError, match="comes twice"):
        parse_references(entry + entry)
    with pytest.raises(ValueError, match="lacks year"):
        parse_references(entry.replace("year = {2020},", ""))


def test_an_unknown_key_is_refused_in_one_line():
    with pytest.raises(UserError, match="no entry 'doe1999nothing'"):
        find_reference("doe1999nothing")
