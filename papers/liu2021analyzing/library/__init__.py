"""What liu2021analyzing alone is made of."""
