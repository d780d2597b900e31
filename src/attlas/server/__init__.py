"""Checks for a language model or another program, as tools of the Model Context Protocol."""
