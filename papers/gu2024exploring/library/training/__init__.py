"""Gradient descent on two-layer networks, beside regression with their tangent kernels."""
