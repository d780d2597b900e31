"""Bounds by margins, compression and noise, and the trained models that they certify."""
