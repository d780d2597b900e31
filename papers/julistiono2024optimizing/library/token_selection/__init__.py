"""Gradient and mirror descent and flow on attention weights, and paths against their SVMs."""
