"""Measures of gu2024exploring."""
