"""Do the tests notice a wrong formula? Operators break one at a time, and tests and claims run.

`python -m benchmarks.mutants` draws mutants of every module of formulas of the instrument and of
the papers' libraries, runs the unit tests of `make test` that import the module, then the claims
that do, and writes `benchmarks/results/mutants.json`. `survivors.py` says of each survivor whether
it computes the same, or what test is missing.
"""
