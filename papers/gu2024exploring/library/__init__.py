"""Networks, kernels, diffusion and bounds that the claims and experiments of this paper use."""
