"""Data of liu2021analyzing."""
