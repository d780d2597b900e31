"""Measures of julistiono2024optimizing."""
