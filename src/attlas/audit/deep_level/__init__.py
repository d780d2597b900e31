"""Level deep: what removing a head does to the loss, and its curvature."""
