"""Claims of the audit's own certificates, and of the sources they are set beside."""
