"""Experiments of deora2023optimization: each `.md` file captions the figures of its `.py` file."""
