"""Training of julistiono2024optimizing."""
