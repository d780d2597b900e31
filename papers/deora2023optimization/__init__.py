"""Claims of deora2023optimization, Optimization and Generalization of Multi-head Attention."""
