"""Bounds of julistiono2024optimizing."""
