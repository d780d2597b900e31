"""Objects as a reader sees them, in a page or a notebook: numbers, mathematics, tables."""
