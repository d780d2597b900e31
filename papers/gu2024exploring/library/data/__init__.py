"""Gaussian mixtures and digits under the forward diffusion, as pairs (t, x(t)) and labels x(0)."""
