"""Linearise: neural tangent kernels of finite models, in closed form and tiled."""
