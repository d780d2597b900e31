"""Synthetic regression tasks, translation pairs, and texts as distinct words."""
