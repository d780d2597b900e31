"""Declared domains of arrays: one declaration draws, filters and projects."""
