"""Experiments after liu2021analyzing."""
