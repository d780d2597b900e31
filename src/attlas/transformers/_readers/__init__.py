"""What architectures share in reading a layer from settings and tensors that were read."""
