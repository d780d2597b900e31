"""Proofs of claims: identities by exact algebra, checked again in digits."""
