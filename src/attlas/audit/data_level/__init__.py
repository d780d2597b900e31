"""Level data of the audit: what the heads do on the sequences that a user hands in."""
