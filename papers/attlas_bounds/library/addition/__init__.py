"""A small Transformer that adds numbers: data, model, training and certificates."""
