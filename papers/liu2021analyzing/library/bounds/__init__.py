"""Bounds of liu2021analyzing."""
