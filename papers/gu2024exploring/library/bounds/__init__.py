"""Bounds of gu2024exploring."""
