"""The audit of a model that PyTorch runs; it needs the extra `attlas[torch]`."""
