"""Image classification with the object in one cell of a noisy grid."""
