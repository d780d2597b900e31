"""Optim of julistiono2024optimizing."""
