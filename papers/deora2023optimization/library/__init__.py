"""Bounds, measurements and training that only deora2023optimization uses."""
