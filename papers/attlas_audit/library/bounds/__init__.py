"""Bounds of attlas_audit."""
