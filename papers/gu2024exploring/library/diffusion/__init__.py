"""Diffusion of gu2024exploring."""
