"""Experiments on multi-head attention of deora2023optimization, whose own plots are not stored."""
