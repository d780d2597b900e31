"""The majority of a few chosen signs of a long word."""
