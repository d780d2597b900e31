"""Experiments: grids of cells, their records, and where they run."""
