"""Claims: what a statement is, how it is written, and what became of it."""
