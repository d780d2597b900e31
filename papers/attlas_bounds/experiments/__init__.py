"""Experiments on bounds that certify: each `.md` file captions the figures of its `.py` file."""
