"""Claims of liu2021analyzing, Analyzing Attention Mechanisms through Lens of Sample Complexity."""
