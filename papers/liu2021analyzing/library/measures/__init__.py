"""Attention rows, conditional covariance, linear regions, stationary points, flatness."""
