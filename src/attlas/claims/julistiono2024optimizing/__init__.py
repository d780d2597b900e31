"""Optimizing attention with mirror descent: claims of julistiono2024optimizing (arXiv 2410.14581)."""
