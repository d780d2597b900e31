"""Claim: one folder per paper, one file per theorem or group of lemmas."""
