"""Reviews of liu2021analyzing."""
