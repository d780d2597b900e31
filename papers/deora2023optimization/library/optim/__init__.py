"""Initialisations of multi-head attention, and step sizes that scale with the heads."""
