"""The mutants of `benchmarks.mutants`: each can be made, and the table knows its fate."""

import ast

from benchmarks.mutants.__main__ import read_table
from benchmarks.mutants.mutant import mutants_of

MUTANTS = list(mutants_of())


def test_each_changes_its_file_which_still_parses():
    for _, mutant in MUTANTS:
        assert mutant.old != mutant.new
        assert ast.parse(mutant.source()).body, mutant.name


def test_names_are_unique():
    names = [(paper, mutant.name) for paper, mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_the_table_holds_the_last_fate_of_every_mutant_and_no_unexplained_survivor():
    table = read_table()
    assert {key: fate.digest for key, fate in table.items()} == {
        (paper, mutant.name): mutant.digest for paper, mutant in MUTANTS
    }
    assert [key for key, fate in table.items() if fate.unexplained] == []
