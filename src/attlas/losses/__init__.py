"""Score: losses as functions of one margin."""
