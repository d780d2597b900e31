"""Name things: solutions with certificates, claims, verdicts, norms, references."""
