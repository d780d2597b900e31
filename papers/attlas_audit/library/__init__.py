"""Bounds that the claims on attention audits need beside the instrument."""
