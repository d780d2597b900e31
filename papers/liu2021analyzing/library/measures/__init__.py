"""Measures of liu2021analyzing."""
