"""Claims of gu2024exploring, Exploring the Frontiers of Softmax."""
