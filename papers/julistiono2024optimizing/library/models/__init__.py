"""Models of julistiono2024optimizing."""
