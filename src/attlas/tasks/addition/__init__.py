"""Ten-digit addition by small Transformers, and what their errors are certified at."""
