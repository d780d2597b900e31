"""The semidefinite program of a worst case, its multipliers as fractions and its worst runs."""
