"""What the experiments of this paper draw alike: inputs with labels, mixtures, digits."""
