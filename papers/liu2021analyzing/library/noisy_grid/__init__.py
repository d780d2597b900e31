"""Noisy MNIST: the images, the three networks and where their attention looks."""
