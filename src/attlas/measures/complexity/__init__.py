"""Complexity of classes and of networks: Rademacher averages and linear regions."""
