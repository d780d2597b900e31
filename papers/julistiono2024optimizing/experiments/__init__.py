"""Experiments of julistiono2024optimizing, Optimizing Attention with Mirror Descent."""
