"""Reproduce: one file per experiment."""
