"""Data of gu2024exploring."""
