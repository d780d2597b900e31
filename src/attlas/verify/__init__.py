"""Try: check, control, challenge and replay claims; returns, never writes."""
