"""Published verdicts: written with the strengths, shown where the folder has no verdict."""

from dataclasses import replace

import pytest

from attlas.claims.verdict import Outcome
from attlas.experiments.published_verdicts import VERDICTS, published_verdicts, write_verdicts
from attlas.experiments.store import Store, published_store
from attlas.experiments.strengths import published_strengths
from attlas.experiments.verdicts import is_current, write_report
from attlas.site.checked_claims import checked_claims
from attlas.verify.check import check
from attlas.verify.registry import one_claim

NAME = "julistiono2024optimizing/lemma-12"
METADATA = {
    "code": "f" * 64, "commit": "a" * 40, "finished": "2026-11-29T10:00:00+00:00",
    "versions": {"attlas": "0.1.0", "jax": "0.10.2"},
}  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return check(one_claim(NAME), count=40, challenge=0)


def written(folder, report, source):
    metadata = {**METADATA, "source": {"sha256": source, "commit": "b" * 40, "modified": False}}
    write_verdicts([(report, metadata)], folder)
    return Store(folder)


def test_the_published_verdicts_are_those_of_the_published_strengths():
    store = published_store()
    assert store is not None
    verdicts = {report.claim: report for report, _ in published_verdicts(store)}
    entries = published_strengths()
    assert verdicts.keys() == entries.keys()
    # A proof may be published after the verdict that it strengthens.
    unlike = [
        name
        for name, report in verdicts.items()
        if (report.verdict.outcome, report.ratio)
        != (entries[name]["outcome"], entries[name]["ratio"])
    ]
    assert unlike == [], "run: make publish-strengths"


def test_a_published_verdict_is_shown_with_its_date_where_none_is_stored(report, tmp_path):
    claim = one_claim(NAME)
    published = written(tmp_path / "out", report, report.source)
    empty = Store(tmp_path / "none")
    (entry,) = checked_claims(empty, [claim], [], published).entries
    assert (entry.outcome, entry.published.day) == (Outcome.SUPPORTED, "2026-11-29")
    assert entry.published.versions == "attlas 0.1.0, jax 0.10.2"
    (alone,) = checked_claims(empty, [claim], []).entries
    assert (alone.outcome, alone.published) == (None, None)
    # One that is stored comes first.
    write_report(Store(tmp_path / "own"), report, claim)
    (own,) = checked_claims(Store(tmp_path / "own"), [claim], [], published).entries
    assert (own.outcome, own.published) == (Outcome.SUPPORTED, None)


def test_a_published_verdict_of_other_sources_is_dated_and_not_shown(report, tmp_path):
    published = written(tmp_path / "out", report, "0" * 64)
    (entry,) = checked_claims(Store(tmp_path), [one_claim(NAME)], [], published).entries
    assert (entry.report, entry.published, entry.outdated) == (None, None, "2026-11-29")


def test_a_claim_of_a_user_with_such_a_name_has_no_published_verdict(report, tmp_path):
    own = tmp_path / "claims_mine.py"
    own.write_text("x = 1\n")
    claim = replace(one_claim(NAME), place=(str(own), 1))
    published = written(tmp_path / "out", report, report.source)
    (entry,) = checked_claims(Store(tmp_path), [claim], [], published).entries
    assert (entry.report, entry.outdated) == (None, "")


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_file_that_was_altered_is_named(report, tmp_path, place):
    store = written(tmp_path, report, report.source)
    path = tmp_path / VERDICTS
    content = bytearray(path.read_bytes())
    # The header's flags, time and system, bytes 4 to 9, do not depend on the content.
    at = 10 + place * (len(content) - 10) // 100
    content[at] ^= 16
    path.write_bytes(content)
    assert published_verdicts(store) == ()
    (note,) = store.notes
    assert "is not a file of published verdicts" in note


def test_equal_reports_give_an_equal_file(report, tmp_path):
    files = [written(tmp_path / name, report, report.source).root / VERDICTS for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    (pair,) = published_verdicts(Store(tmp_path / "a"))
    assert is_current(one_claim(NAME), pair[0])
    assert pair[0].ratio == report.ratio
