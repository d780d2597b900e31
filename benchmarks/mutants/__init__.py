"""Do the tests notice a wrong formula? Operators break one at a time, and tests and claims run.

`python -m benchmarks.mutants` draws mutants from all formulas of the instrument and of the papers'
libraries, runs the unit tests of `make test` that enter the function, then the claims that do, and
writes `benchmarks/results/mutants.json`. The files in `survivors` say why a mutant is no error; for
any other survivor a test is missing.
"""
