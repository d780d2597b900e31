"""Sparse majority: a head reads the majority of a few bits among many."""
