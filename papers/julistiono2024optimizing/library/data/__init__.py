"""Data of julistiono2024optimizing."""
