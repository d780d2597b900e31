"""Losses of liu2021analyzing."""
