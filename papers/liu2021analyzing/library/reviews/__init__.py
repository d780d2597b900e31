"""IMDB reviews: word sequences, classifiers with and without attention, training."""
