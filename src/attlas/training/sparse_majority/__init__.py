"""Training of classifiers of sparse majority, and certified bounds on their errors."""
