"""Worst cases of first-order methods on classes of functions, exactly."""
