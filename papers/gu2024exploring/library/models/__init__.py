"""Models of gu2024exploring."""
