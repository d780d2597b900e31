"""Statistics of runs: intervals, slopes, trends, distances and stability."""
