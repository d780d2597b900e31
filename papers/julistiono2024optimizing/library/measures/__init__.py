"""Which tokens are selected, how fast paths settle, and how near they end to their SVM."""
