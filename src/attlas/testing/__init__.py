"""Claims in the tests of a user's project: a pytest plugin and Hypothesis strategies."""
