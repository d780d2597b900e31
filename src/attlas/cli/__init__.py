"""The command `attlas`: thin commands over the public API."""
