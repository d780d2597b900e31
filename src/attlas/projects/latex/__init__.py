"""A paper's LaTeX: sources, macros, theorem environments, statements; nothing is executed."""
