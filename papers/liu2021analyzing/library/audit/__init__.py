"""Audit of liu2021analyzing."""
