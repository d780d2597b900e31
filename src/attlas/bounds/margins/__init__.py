"""Bounds on the error of attention from its margins: the ledger from Theorem 4.1 to PAC-Bayes."""
