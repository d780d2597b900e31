"""The live explorer: JavaScript modules that recompute, and what writes them into one page."""
