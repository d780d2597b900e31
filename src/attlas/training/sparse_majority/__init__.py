"""training/sparse_majority"""
