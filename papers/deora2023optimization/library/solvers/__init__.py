"""Solvers of deora2023optimization."""
