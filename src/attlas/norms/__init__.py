"""Norms of matrices and vectors, with certified values where none is in closed form."""
