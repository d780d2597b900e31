"""One set of trained heads measured by the quantities and bounds of all five papers."""
