"""Models, data, measurements, bounds and training that only liu2021analyzing uses."""
