"""Regularisation paths, minima on balls, the nuclear-norm SVM, and problems with a local choice."""
