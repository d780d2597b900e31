"""Initialisation, mixture and training bounds, in every version of their constants."""
