"""Data: generated problems with ground truth, and loaders of real data sets."""
