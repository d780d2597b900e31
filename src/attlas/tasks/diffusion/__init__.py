"""Diffusion: scores learned from noised points, and samples drawn with them."""
