"""Solvers of liu2021analyzing."""
