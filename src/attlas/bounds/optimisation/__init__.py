"""Bounds on training: how far, how fast, from which start and with which width."""
