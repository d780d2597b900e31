"""Command: thin commands over the public API."""
