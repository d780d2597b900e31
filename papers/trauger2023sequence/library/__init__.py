"""What trauger2023sequence alone is made of."""
