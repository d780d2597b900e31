"""Experiments of liu2021analyzing: each `.md` file captions the figures of its `.py` file."""
