"""Measures of deora2023optimization."""
