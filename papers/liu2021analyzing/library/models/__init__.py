"""Models of liu2021analyzing."""
