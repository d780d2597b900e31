"""Training of liu2021analyzing."""
