"""Claims in the tests of one's own project: a plugin of pytest, strategies of Hypothesis."""
