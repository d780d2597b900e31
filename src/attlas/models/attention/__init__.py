"""Attention layers and heads, as the papers define them."""
