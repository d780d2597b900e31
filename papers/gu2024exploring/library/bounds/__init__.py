"""Bounds of Theorems 4.2, 6.6 and F.2 that no other paper uses, each with the proof it needs."""
