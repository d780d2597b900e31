"""Solve: convex programs, each answer with a certificate."""
