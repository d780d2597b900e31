"""Run: grids of cells with atomic records and resume; the only place that writes."""
