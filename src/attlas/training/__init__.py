"""Training: one compiled scan for one model or an ensemble."""
