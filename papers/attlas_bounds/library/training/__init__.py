"""Certified models of characters and digits, and weights on a grid."""
