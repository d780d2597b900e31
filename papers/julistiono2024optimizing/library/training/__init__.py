"""Encoders trained on sentences and digits whose decisive tokens are known."""
