"""Blocks of heads and of samples of a Gram matrix, whose arrays `ntk_gram` has read."""
