"""Audit: what attention theory says about a trained Transformer."""
