"""Experiments on softmax networks; gu2024exploring itself has none."""
