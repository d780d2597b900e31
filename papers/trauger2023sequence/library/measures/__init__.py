"""Complexity suprema on norm balls, crossings with a threshold, and trends over lengths."""
