"""Training beside the bounds: fresh sets, leave-one-out, many heads, digits."""
