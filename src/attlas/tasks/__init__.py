"""Vertical slices: all that one task needs besides the general library."""
