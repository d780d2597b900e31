"""Greedy covers, and the single-layer bounds compared over norms and sample sizes."""
