"""A user's project: what its file says, what it defines, and who wrote it."""
