"""Training of gu2024exploring."""
