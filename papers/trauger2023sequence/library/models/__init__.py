"""The attention networks of Sections 4.2 and 6."""
