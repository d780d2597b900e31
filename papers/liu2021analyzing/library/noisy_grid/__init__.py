"""Noisy grid of liu2021analyzing."""
