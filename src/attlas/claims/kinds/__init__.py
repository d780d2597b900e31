"""Kinds of claims: one object for each, with its rule, its tolerance and its words."""
