"""Wrong constants, exponents and signs in the library's formulas, and the claims that notice them.

`python -m benchmarks.mutants` changes one formula at a time, checks the claims whose modules import
it until one comes out otherwise than declared, and writes `benchmarks/results/mutants.json`. A
mutant that no claim notices must be a true statement, and its entry says why; any other survivor
is an error. One file for each paper lists its mutants, and one of `statements` those of formulas
that stand in its claim files alone: each makes a statement stronger.
"""
