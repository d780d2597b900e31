"""CHANGELOG, CITATION and pyproject say the same of the project, and name the five papers."""

import re
import tomllib
from pathlib import Path

import pytest

from attlas.projects.bibliography import all_references

ROOT = Path(__file__).parents[1]
PAPERS = (
    "deora2023optimization",
    "gu2024exploring",
    "julistiono2024optimizing",
    "liu2021analyzing",
    "trauger2023sequence",
)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
"""The headings of Keep a Changelog."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict:
    return tomllib.loads(text("pyproject.toml"))["project"]


@pytest.mark.parametrize("key", PAPERS)
def test_a_paper_is_named_where_readers_look(key):
    reference = all_references()[key]
    assert f'title: "{reference.title}"' in text("CITATION.cff")
    for name in ("CITATION.cff", "README.md"):
        assert reference.url in text(name), name
    assert reference.url in project()["urls"].values()
    assert key in text("CHANGELOG.md")


def test_the_version_is_one():
    assert f"\nversion: {project()['version']}\n" in text("CITATION.cff")
    first = re.search(r"^## (\S+) - (Unreleased|\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), re.M)
    assert first
    assert first[1] == project()["version"]


def test_the_changelog_keeps_its_form():
    changes = text("CHANGELOG.md")
    versions = re.findall(r"^## (.+)$", changes, re.M)
    form = re.compile(r"\d+\.\d+\.\d+ - (Unreleased|\d{4}-\d\d-\d\d)")
    assert [each for each in versions if not form.fullmatch(each)] == []
    assert set(re.findall(r"^### (.+)$", changes, re.M)) <= KINDS


def test_the_root_has_no_download():
    """Packages and archives that a command left behind are no part of the sources."""
    packed = {".whl", ".gz", ".zip", ".tar", ".egg"}
    assert [path.name for path in ROOT.iterdir() if path.suffix in packed] == []
