"""Measurements of attention: its concentration, positions, direction and spectra."""
