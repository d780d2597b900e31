"""Level deep: what ablating a head does to the loss, and its curvature."""
