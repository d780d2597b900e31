"""Claims of trauger2023sequence, Sequence Length Independent Norm-Based Generalization Bounds."""
