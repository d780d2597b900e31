"""What bounds and measurements tell about one trained attention layer."""
