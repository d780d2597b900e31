"""Kernels of gu2024exploring."""
