"""Capture: a PyTorch model runs as it is, and its attention is read layer by layer while it does.

It needs the extra `attlas[torch]`. What `attlas.transformers` reads without PyTorch it reads by a
forward pass of its own; here no forward pass is written a second time.
"""
