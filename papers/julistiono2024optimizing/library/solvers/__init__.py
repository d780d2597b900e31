"""Solvers of julistiono2024optimizing."""
