"""Token selection of julistiono2024optimizing."""
