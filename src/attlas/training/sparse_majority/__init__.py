"""Trained classifiers of sparse majority, and what their errors are certified at."""
