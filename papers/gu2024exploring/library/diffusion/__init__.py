"""Learned and exact scores, sampling by time reversal, and the error terms of Claim G.1."""
