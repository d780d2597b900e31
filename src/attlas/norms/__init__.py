"""Norms of arrays and matrices, their duals, their balls and the projections on them."""
