"""Tangent kernels of two-layer networks at finite and infinite width, and kernel regression."""
