"""Generate: instances with ground truth, and loaders of real sets."""
